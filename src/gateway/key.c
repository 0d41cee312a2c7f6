/*
 * The fate of an Idempotency-Key: a worker has the key, the request may begin, or the worker was lost.
 *
 * A worker with the key answers for the key.  Else the notes of witnesses (witness.c) name the workers to which the key
 * was sent.  An existing worker is asked for the attempt, which bars a request still on its way, and then for the key
 * again.  A removed worker may have run the program without any other trace: the run is lost.
 */
#include "gateway/gateway_private.h"

#include <stdio.h>

#define SETTLED_MS 1000                    /* requests with younger notes may still arrive, and are not barred */

struct question {
        struct key_check *check;
        const struct key_note *note;
        char name[254];                    /* of the worker or pod */
        struct worker_call call;
};

struct key_check {
        struct forward *forward;
        struct gateway *gateway;
        key_done_fn *done;
        struct find *find;
        struct key_notes notes;            /* of the first search */
        struct question questions[KEY_NOTES_MAX];
        size_t questions_n, left;          /* left: without an answer */
        struct target_name name;
        bool searched;                     /* the first search has ended */
        bool asks_workers;                 /* attempts were barred or are over: the second search is next */
        const struct key_note *gone;       /* a note whose worker is gone */
        char why[200];                     /* why the fate is unknown, or "" */
        struct timer end;
};

/* ---- notes ---- */

static bool has_attempt(const struct key_notes *notes, const char *attempt)
{
        for (size_t i = 0; i < notes->n; i++)
                if (strcmp(notes->list[i].attempt, attempt) == 0)
                        return true;
        return false;
}

/* Was the attempt made by this request, and not accepted by the worker? */
static bool is_spent(const struct forward *forward, const struct key_note *note)
{
        for (size_t i = 0; i < forward->spent_n; i++)
                if (strcmp(forward->spent[i], note->attempt) == 0)
                        return true;
        return false;
}

/* ---- end ---- */

void key_check_stop(struct key_check *check)
{
        if (!check)
                return;
        loop_untimer(check->gateway->loop, &check->end);
        find_stop(check->find);
        for (size_t i = 0; i < check->questions_n; i++) {
                worker_call_stop(&check->questions[i].call);
                if (check->gateway->kube)
                        kube_forget(check->gateway->kube, &check->questions[i]);
        }
        key_notes_free(&check->notes);
        free(check);
}

static void finish(struct key_check *check, const struct key_answer *answer)
{
        struct forward *forward = check->forward;
        forward->check = NULL;
        check->done(forward, answer);
        key_check_stop(check);
}

static void doubt(struct key_check *check, const char *fmt, const char *name)
{
        if (!check->why[0])
                snprintf(check->why, sizeof check->why, fmt, name);
}

static void search(struct key_check *check);

/* Continue after the last answer. */
static void on_end(struct timer *timer)
{
        struct key_check *check = timer->owner;
        if (check->why[0])
                finish(check, &(struct key_answer){ .fate = KEY_UNSURE, .why = check->why });
        else if (check->gone)
                finish(check, &(struct key_answer){ .fate = KEY_LOST, .note = check->gone });
        else if (check->asks_workers)
                search(check);
        else
                finish(check, &(struct key_answer){ .fate = KEY_FREE, .notes = &check->notes });
}

static void answered(struct key_check *check)
{
        if (--check->left == 0)
                loop_timer(check->gateway->loop, &check->end, 0);
}

/* ---- the worker of a note ---- */

static void on_attempt(struct worker_call *call, enum call_end end, const char *why)
{
        struct question *question = call->owner;
        const char *body = call->body.bytes ? call->body.bytes : "";
        bool told = end == CALL_ANSWERED && call->answer->status == MHD_HTTP_OK;
        bool barred = end == CALL_ANSWERED && call->answer->status == MHD_HTTP_NOT_FOUND;
        json_t *answer = told ? json_loadb(body, call->body.len, 0, NULL) : NULL;
        (void)why;
        if (told && !json_is_true(json_object_get(answer, "over")))
                doubt(question->check, "worker %.100s carries out the request of this Idempotency-Key", question->name);
        else if (!told && !barred)
                doubt(question->check, "worker %.100s was sent this Idempotency-Key, and does not answer", question->name);
        json_decref(answer);
        answered(question->check);
}

static struct question *new_question(struct key_check *check, const struct key_note *note, const char *name)
{
        struct question *question = &check->questions[check->questions_n++];
        *question = (struct question){ .check = check, .note = note };
        snprintf(question->name, sizeof question->name, "%s", name);
        check->left++;
        return question;
}

static void ask_worker(struct key_check *check, struct gateway_worker *worker, const struct key_note *note)
{
        char target[80];
        struct question *question = new_question(check, note, worker->name);
        snprintf(target, sizeof target, "/v1/gateway/attempts/%s", note->attempt);
        question->call.owner = question;
        question->call.done = on_attempt;
        check->asks_workers = true;
        worker_call_start(&question->call, worker, "GET", target, NULL, NULL, NULL, 0, ASK_MS);
}

static void on_pod(void *owner, const struct kube_answer *answer)
{
        struct question *question = owner;
        const json_t *metadata = json_object_get(answer->body, "metadata"),
                     *status = json_object_get(answer->body, "status");
        const char *uid = json_string_value(json_object_get(metadata, "uid")),
                   *phase = json_string_value(json_object_get(status, "phase"));
        bool over = phase && (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0);
        bool other = uid && strcmp(uid, question->note->uid) != 0;
        if (answer->refusal == KUBE_NOT_FOUND || (answer->refusal == KUBE_DONE && uid && (other || over)))
                question->check->gone = question->note;
        else
                doubt(question->check, "pod %.100s was sent this Idempotency-Key, and does not answer", question->name);
        answered(question->check);
}

/* The watch of this gateway may lack a new pod, so ask the API server for its newest state. */
static void ask_pod(struct key_check *check, const struct key_note *note)
{
        char path[300];
        struct question *question = new_question(check, note, note->pod);
        snprintf(path, sizeof path, "pods/%s", note->pod);
        kube_ask(check->gateway->kube, "GET", path, NULL, on_pod, question);
}

/* Is the tag of a worker of the list still unknown? */
static bool has_unknown(const struct fleet *fleet)
{
        for (const struct gateway_worker *worker = fleet_first(fleet); worker; worker = worker->next)
                if (!worker->uid[0] && !worker->tag[0])
                        return true;
        return false;
}

/* The note's worker is none of this gateway's. */
static void judge_absent(struct key_check *check, const struct key_note *note)
{
        const struct gateway *gateway = check->gateway;
        if (check->forward->safe)
                return;
        if (fleet_lost_tag(gateway->fleet, note->tag) || (!note->uid[0] && !has_unknown(gateway->fleet)))
                check->gone = note;
        else if (note->uid[0] && gateway->kube)
                ask_pod(check, note);
        else
                doubt(check, "worker %.100s was sent this Idempotency-Key, and is not known here", note->tag);
}

static void judge(struct key_check *check, const struct key_note *note)
{
        const struct fleet *fleet = check->gateway->fleet;
        struct gateway_worker *worker = fleet_by_tag(fleet, note->tag);
        worker = worker ? worker : fleet_by_uid(fleet, note->uid);
        if (is_spent(check->forward, note))
                return;
        if (!worker)
                judge_absent(check, note);
        else if (worker->state == WORKER_DOWN || worker->state == WORKER_UNKNOWN)
                doubt(check, "worker %.100s was sent this Idempotency-Key, and does not answer", worker->name);
        else if (note->age_ms < SETTLED_MS)
                doubt(check, "worker %.100s was sent this Idempotency-Key just now", worker->name);
        else
                ask_worker(check, worker, note);
}

/* ---- searches ---- */

static void take_notes(struct key_check *check, struct find_result *result)
{
        key_notes_free(&check->notes);
        check->notes = result->notes;
        result->notes = (struct key_notes){ 0 };
}

/* Add notes of earlier searches and of the cache, whose witnesses are gone; keep all notes for later searches. */
static void remember(struct key_check *check)
{
        struct key_notes *known = &check->forward->known;
        note_cache_tell(check->gateway->note_cache, key_name(check->forward), known);
        for (size_t i = 0; i < known->n; i++)
                if (!has_attempt(&check->notes, known->list[i].attempt))
                        key_note_keep(&check->notes, &known->list[i], known->list[i].holder);
        key_notes_free(known);
        for (size_t i = 0; i < check->notes.n; i++)
                key_note_keep(known, &check->notes.list[i], check->notes.list[i].holder);
}

/* The first search: the workers of the notes are next. */
static void begin_questions(struct key_check *check, struct find_result *result)
{
        take_notes(check, result);
        remember(check);
        key_renew(check->forward, &check->notes);
        if (!check->notes.n && fleet_may_hide_keys(check->gateway->fleet))
                doubt(check, "%s", "a worker that does not answer may have this Idempotency-Key");
        check->left++;                     /* of this function */
        for (size_t i = 0; i < check->notes.n; i++)
                judge(check, &check->notes.list[i]);
        answered(check);
}

static void on_found(void *owner, struct find_result *result)
{
        struct key_check *check = owner;
        check->find = NULL;
        if (result->worker) {
                if (!worker_takes_work(result->worker))
                        key_renew(check->forward, &result->notes);      /* the worker may go with its store */
                finish(check, &(struct key_answer){ .fate = KEY_FOUND, .worker = result->worker });
                return;
        }
        if (result->unsure) {
                const char *why = "a worker does not say whether it has what the request names";
                finish(check, &(struct key_answer){ .fate = KEY_UNSURE, .why = why });
                return;
        }
        if (!check->searched) {
                check->searched = true;
                begin_questions(check, result);
                return;
        }
        for (size_t i = 0; i < result->notes.n; i++)
                if (!has_attempt(&check->notes, result->notes.list[i].attempt))
                        doubt(check, "%s", "another gateway sends this Idempotency-Key to a worker");
        take_notes(check, result);
        check->left++;
        answered(check);
}

static void search(struct key_check *check)
{
        check->asks_workers = false;
        check->find = find_start(check->gateway, check->forward->request, &check->name, on_found, check);
}

struct key_check *key_check_start(struct forward *forward, key_done_fn *done)
{
        struct key_check *check = mem_alloc(sizeof *check);
        *check = (struct key_check){ .forward = forward,
                .gateway = forward->gateway,
                .done = done,
                .name = { .kind = "idempotency_key", .name = forward->key },
                .end = { .fired = on_end, .owner = check } };
        search(check);
        return check;
}
