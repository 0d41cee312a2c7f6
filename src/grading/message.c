/*
 * Messages to runners.  A helper thread makes a long message: the JSON of 10,000 cases, or of values of some MiB, takes
 * longer than a step of the event loop may take.
 *
 * A message refers to the request of its grading and to results in JSON, and changes neither.  So its grading is not
 * freed before the message is made.
 */
#include "grading/grading_private.h"

#define AT_ONCE_MAX (32 * KIB) /* bytes of a message made in the loop */
#define CASE_BYTES 500         /* of a case in a message, without its texts */
#define TEXTS_MAX 4

struct message {
        struct job job;
        struct workers *workers; /* NULL: the message is made at once */
        struct grading *grading;
        json_t *members;
        struct {
                const char *name;
                struct bytes bytes;
        } texts[TEXTS_MAX];
        size_t texts_n;
        struct message_case *cases;
        size_t cases_n, cases_size;
        json_t *(*encode)(const struct grading *grading, const struct message_case *one);
        size_t bytes;            /* about how long the message becomes */
        struct send_queue_packet *frames;
        void (*made)(void *owner, struct send_queue_packet *frames);
        void *owner;             /* NULL: the message is not wanted any more */
};

struct message *message_new(struct grading *grading, const char *op, json_t *members)
{
        struct message *message = mem_alloc(sizeof *message);
        *message = (struct message){
                .workers = engine_workers(grading->grader->engine), .grading = grading, .members = members
        };
        json_object_set_new(members, "op", json_string(op));
        grading->messages_n++;
        return message;
}

void message_set_role(struct message *message, const char *role)
{
        json_object_set_new(message->members, "role", json_string(role));
}

void message_add_text(struct message *message, const char *name, const char *bytes, size_t len)
{
        message->texts[message->texts_n].name = name;
        message->texts[message->texts_n++].bytes = (struct bytes){ (char *)(uintptr_t)bytes, len };
        message->bytes += len;
}

void message_set_encoder(struct message *message,
        json_t *(*encode)(const struct grading *grading, const struct message_case *one))
{
        message->encode = encode;
}

void message_add_case(struct message *message, const struct message_case *one, size_t bytes)
{
        if (message->cases_n == message->cases_size) {
                message->cases_size = message->cases_size ? 2 * message->cases_size : 16;
                message->cases = mem_resize(message->cases, message->cases_size * sizeof *message->cases);
        }
        message->cases[message->cases_n] = *one;
        json_incref(message->cases[message->cases_n++].document);
        message->bytes += CASE_BYTES + bytes;
}

/* ---- perhaps in a helper thread ---- */

static void add_texts(struct message *message)
{
        struct arena arena = { 0 };
        for (size_t i = 0; i < message->texts_n; i++) {
                const struct bytes *bytes = &message->texts[i].bytes;
                size_t len;
                const char *text = model_utf8(&arena, bytes->bytes ? bytes->bytes : "", bytes->len, &len);
                json_object_set_new(message->members, message->texts[i].name, json_stringn(text, len));
        }
        arena_done(&arena);
}

static void add_cases(struct message *message)
{
        json_t *cases = json_array();
        for (size_t i = 0; i < message->cases_n; i++) {
                json_array_append_new(cases, message->encode(message->grading, &message->cases[i]));
                json_decref(message->cases[i].document);
        }
        message->cases_n = 0;
        json_object_set_new(message->members, "cases", cases);
}

/* NULL: the message is too long. */
static struct send_queue_packet *frames_of(const char *json)
{
        struct buf text;
        buf_init(&text, CHANNEL_MESSAGE_MAX);
        bool fits = json && buf_add(&text, "E", 1) && buf_add(&text, json, strlen(json));
        struct send_queue_packet *frames = fits ? channel_frames(CHANNEL_MESSAGE, text.bytes, text.len) : NULL;
        buf_done(&text);
        return frames;
}

static void work(struct job *job)
{
        struct message *message = job->owner;
        if (message->encode)
                add_cases(message);
        add_texts(message);
        char *text = json_dumps(message->members, JSON_COMPACT | JSON_ENSURE_ASCII);
        message->frames = frames_of(text);
        free(text);
        json_decref(message->members);
        message->members = NULL;
}

/* ---- in the loop ---- */

static void message_free(struct message *message)
{
        struct grading *grading = message->grading;
        struct workers *workers = message->workers;
        for (size_t i = 0; i < message->cases_n; i++)
                json_decref(message->cases[i].document);
        json_decref(message->members);
        free(message->cases);
        send_queue_packets_free(message->frames);
        free(message);
        grading_put(grading, workers);
}

static void on_worked(struct job *job)
{
        struct message *message = job->owner;
        if (message->owner && job->dropped)
                work(job);
        if (message->owner)
                message->made(message->owner, message->frames);
        if (message->owner)
                message->frames = NULL;
        message_free(message);
}

struct message *message_make(struct message *message, void (*made)(void *owner, struct send_queue_packet *frames),
        void *owner)
{
        message->made = made;
        message->owner = owner;
        message->job = (struct job){ .work = work, .done = on_worked, .owner = message };
        if (message->workers && message->bytes > AT_ONCE_MAX) {
                worker_submit(message->workers, message->grading->owner_key, &message->job);
                return message;
        }
        work(&message->job);
        on_worked(&message->job);
        return NULL;
}

void message_forget(struct message *message)
{
        if (message)
                message->owner = NULL;
}

int message_send_json(struct run *run, json_t *message)
{
        char *text = json_dumps(message, JSON_COMPACT | JSON_ENSURE_ASCII);
        struct send_queue_packet *frames = frames_of(text);
        json_decref(message);
        free(text);
        return frames ? run_send_frames(run, frames) : -EMSGSIZE;
}
