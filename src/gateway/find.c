/*
 * The worker with a name: all answering workers are asked at once.  For an Idempotency-Key the answers include the
 * notes of witnesses (witness.c).
 */
#include "gateway/gateway_private.h"

#include <stdio.h>

struct question {
        struct find *find;
        struct worker_call call;
        struct gateway_worker *worker;     /* a reference */
};

struct find {
        struct gateway *gateway;
        find_done_fn *done;
        void *owner;
        struct question *questions;
        size_t n, left;
        struct find_result result;
        struct timer end;
};

/* ---- notes ---- */

/* Keep a note, with a reference to the holder.  False: KEY_NOTES_MAX reached. */
bool key_note_keep(struct key_notes *notes, const struct key_note *note, struct gateway_worker *holder)
{
        if (notes->n == KEY_NOTES_MAX)
                return false;
        if (!notes->list)
                notes->list = mem_alloc(KEY_NOTES_MAX * sizeof *notes->list);
        notes->list[notes->n] = *note;
        notes->list[notes->n++].holder = worker_ref(holder);
        return true;
}

void key_notes_free(struct key_notes *notes)
{
        for (size_t i = 0; i < notes->n; i++)
                worker_unref(notes->list[i].holder);
        free(notes->list);
        *notes = (struct key_notes){ 0 };
}

/* ---- the search ---- */

static void find_free(struct find *find)
{
        loop_untimer(find->gateway->loop, &find->end);
        for (size_t i = 0; i < find->n; i++) {
                worker_call_stop(&find->questions[i].call);
                worker_unref(find->questions[i].worker);
        }
        key_notes_free(&find->result.notes);
        free(find->questions);
        free(find);
}

void find_stop(struct find *find)
{
        if (find)
                find_free(find);
}

static void on_end(struct timer *timer)
{
        struct find *find = timer->owner;
        struct find_result result = find->result;
        find_done_fn *done = find->done;
        void *owner = find->owner;
        if (result.worker)
                worker_ref(result.worker);
        result.unsure = result.unsure && !result.worker;
        find->result.notes = (struct key_notes){ 0 };
        find_free(find);
        done(owner, &result);
        key_notes_free(&result.notes);
        if (result.worker)
                worker_unref(result.worker);
}

static void copy_text(json_t *json, const char *name, char *ret, size_t size)
{
        const char *text = json_string_value(json_object_get(json, name));
        snprintf(ret, size, "%s", text ? text : "");
}

static void add_note(struct find *find, struct gateway_worker *holder, json_t *sent)
{
        struct key_note note = { .age_ms = (uint64_t)json_integer_value(json_object_get(sent, "age_ms")) };
        copy_text(sent, "tag", note.tag, sizeof note.tag);
        copy_text(sent, "attempt", note.attempt, sizeof note.attempt);
        copy_text(sent, "pod", note.pod, sizeof note.pod);
        copy_text(sent, "uid", note.uid, sizeof note.uid);
        copy_text(sent, "hash", note.hash, sizeof note.hash);
        if (!key_note_keep(&find->result.notes, &note, holder))
                find->result.unsure = true;
}

static void on_answer(struct worker_call *call, enum call_end end, const char *why)
{
        struct question *question = call->owner;
        struct find *find = question->find;
        (void)why;
        json_t *answer = end == CALL_ANSWERED && call->answer->status == 200
                ? json_loadb(call->body.bytes ? call->body.bytes : "", call->body.len, 0, NULL) : NULL;
        if (json_is_true(json_object_get(answer, "found")))
                find->result.worker = question->worker;
        if (json_object_get(answer, "sent"))
                add_note(find, question->worker, json_object_get(answer, "sent"));
        find->result.everywhere = find->result.everywhere || json_is_true(json_object_get(answer, "everywhere"));
        bool told = end == CALL_ANSWERED && call->answer->status < 500;
        find->result.unsure = find->result.unsure || (!told && question->worker->state != WORKER_DOWN);
        json_decref(answer);
        if (--find->left == 0 || find->result.worker)
                loop_timer(find->gateway->loop, &find->end, 0);
}

static char *body_of(struct http_request *request, const struct target_name *name)
{
        const struct hop_claims *claims = gateway_claims(request, 1);
        json_t *body = json_pack("{s:s}", name->kind, name->name);
        if (claims)
                json_object_set_new(body, "tenant", json_string(claims->tenant));
        if (name->user)
                json_object_set_new(body, "user", json_string(name->user));
        char *text = json_dumps(body, JSON_COMPACT);
        json_decref(body);
        return text ? text : mem_copy("{}", 2);
}

struct find *find_start(struct gateway *gateway, struct http_request *request, const struct target_name *name,
        find_done_fn *done, void *owner)
{
        struct find *find = mem_alloc(sizeof *find);
        size_t n = 0;
        for (struct gateway_worker *worker = fleet_first(gateway->fleet); worker; worker = worker->next)
                n += worker->state != WORKER_DOWN;
        *find = (struct find){
                .gateway = gateway, .done = done, .owner = owner, .left = n, .end = { .fired = on_end }
        };
        find->end.owner = find;
        find->questions = mem_alloc((n + 1) * sizeof *find->questions);
        const char *head = gateway_credentials(request);
        const struct hop_claims *claims = gateway_claims(request, 1);
        char *body = body_of(request, name);
        for (struct gateway_worker *worker = fleet_first(gateway->fleet); worker && find->n < n;
                worker = worker->next) {
                if (worker->state == WORKER_DOWN)
                        continue;
                struct question *question = &find->questions[find->n++];
                *question = (struct question){ .find = find, .worker = worker_ref(worker) };
                question->call.owner = question;
                question->call.done = on_answer;
                worker_call_start(&question->call, worker, "POST", "/v1/gateway/find", claims, head, body,
                        strlen(body), ASK_MS);
        }
        free(body);
        if (!n)
                loop_timer(gateway->loop, &find->end, 0);
        return find;
}
