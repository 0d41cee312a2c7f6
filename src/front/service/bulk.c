/*
 * Many requests over a connection: a request per line, and a line of answer at the end of each.
 *
 * libmicrohttpd answers after the whole body, so until then records wait in a file without a name.  Requests are taken
 * from the body only while there is room; so neither side can make the other, or the daemon, hold more than some
 * ceilings, at any number of lines.
 */
#include "front/service/bulk.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIVE_MAX 256                       /* of a connection at once; more lines wait in the socket */
#define LINE_MAX_BYTES (16 * MIB)
#define LINES_AT_ONCE 4                    /* taken from a body in a step of the event loop */
#define LINE_KEPT (64 * KIB)               /* bytes of the buffer kept for the next line */
#define SPOOL_MAX (4 * GIB)                /* waiting records; then lines are answered without being run */
#define ID_MAX 256
#define READ_AT_ONCE (64 * KIB)
#define WRITE_AT_ONCE (256 * KIB)          /* bytes of an answer written to the file by the loop */

struct bulk {
        struct bulk *next;
        struct service *service;
        const struct bulk_kind *kind;
        struct http_request *request;      /* NULL: the client has gone */
        char tenant[80], key[20], request_id[65];
        struct trace trace;                /* the request's */
        struct buf line;
        struct parse *parse;               /* of the line before, by a helper thread; NULL: no line is parsed */
        struct timer resume;               /* LINES_AT_ONCE lines were taken: continue in another step of the loop */
        struct holder *holder;             /* the tenant, which is charged for lines */
        uint64_t charged;                  /* bytes of the line being read or parsed */
        bool too_long;                     /* the line being read */
        struct csn_error excess;           /* the share of which the line is too long for; code 0: none */
        uint64_t lines;
        struct bulk_one *first;
        size_t live;
        bool whole;                        /* there are no more lines */
        bool broken;                       /* an answer is lost, so the response cannot be whole */
        int fd;                            /* answers from `sent` to `written` */
        uint64_t sent, written;
        size_t writes;                     /* helper threads writing answers before `written` */
};

struct bulk_one {
        struct bulk_one *next;
        struct bulk *bulk;
        void *job;                         /* the kind's */
        json_t *id;                        /* NULL: the line has none */
        uint64_t line;
        struct share_charge body;          /* bytes of the line */
        struct trace trace;
};

/* A long answer, which a helper thread writes. */
struct bulk_write {
        struct job job;
        struct bulk_one *one;
        int fd;
        uint64_t at;
        struct buf head;                   /* the line up to its long member */
        char *text;
        size_t len;
        bool failed;
};

/* ---- answers ---- */

static void bulk_free(struct bulk *bulk)
{
        if (bulk->request)
                bulk->request->gone = NULL;
        loop_untimer(bulk->service->loop, &bulk->resume);
        parse_free(bulk->parse);
        share_give(bulk->holder, SHARE_BODIES, bulk->charged);
        holder_put(bulk->holder);
        buf_done(&bulk->line);
        fd_close(&bulk->fd);
        for (struct bulk **at = &bulk->service->bulks; *at; at = &(*at)->next)
                if (*at == bulk) {
                        *at = bulk->next;
                        break;
                }
        bulk->service->live--;
        if (service_is_idle(bulk->service))
                bulk->service->idle(bulk->service->owner);
        free(bulk);
}

static void cancel_all(struct bulk *bulk)
{
        for (struct bulk_one *one = bulk->first; one; one = one->next)
                bulk->kind->cancel(one->job);
}

/* The client has gone. */
static void abandon(struct bulk *bulk)
{
        bulk->request = NULL;
        parse_free(bulk->parse);
        bulk->parse = NULL;
        cancel_all(bulk);
        if (!bulk->live)
                bulk_free(bulk);
}

/* The bulk may be freed on return. */
static void send_some(struct bulk *bulk)
{
        static char bytes[READ_AT_ONCE];
        struct http_request *request = bulk->request;
        if (bulk->writes)
                return;
        while (!bulk->broken && bulk->sent < bulk->written && http_has_room(request)) {
                ssize_t n =
                        pread(bulk->fd, bytes, min_u64(sizeof bytes, bulk->written - bulk->sent), (off_t)bulk->sent);
                bulk->broken = n <= 0 || !http_add(request, bytes, (size_t)n);
                bulk->sent += n > 0 ? (uint64_t)n : 0;
        }
        if (bulk->broken) {
                request->gone = NULL;
                http_cut(request);
                abandon(bulk);
                return;
        }
        if (bulk->sent == bulk->written && bulk->sent) {
                bulk->sent = bulk->written = 0;
                if (ftruncate(bulk->fd, 0) < 0)
                        log_text(LOG_WARN, "ftruncate: %s", strerrordesc_np(errno));
        }
        if (bulk->whole && !bulk->parse && !bulk->live && !bulk->written) {
                bulk->request = NULL;
                request->gone = NULL;
                http_end(request);
                bulk_free(bulk);
        }
}

static void on_room(struct http_request *request)
{
        send_some(request->owner);
}

static void put_bytes(struct bulk *bulk, const char *bytes, size_t len)
{
        bulk->broken = bulk->broken || pwrite(bulk->fd, bytes, len, (off_t)bulk->written) != (ssize_t)len;
        bulk->written += len;
}

/* Takes the reference. */
static void put_line(struct bulk *bulk, json_t *json)
{
        struct buf text;
        buf_init(&text, FRONT_RECORD_MAX);
        if (bulk->request && model_dump(json, false, &text) && buf_add(&text, "\n", 1))
                put_bytes(bulk, text.bytes, text.len);
        json_decref(json);
        buf_done(&text);
}


static json_t *answer_of(uint64_t line, json_t *id)
{
        json_t *json = json_object();
        if (id)
                json_object_set(json, "id", id);
        json_object_set_new(json, "line", json_integer((json_int_t)line));
        return json;
}

static void put_error(struct bulk *bulk, uint64_t line, json_t *id, const struct csn_error *error)
{
        json_t *json = answer_of(line, id),
               *why = json_pack("{s:s, s:s}", "code", csn_code_name(error->code), "message", error->text);
        if (error->field[0])
                json_object_set_new(why, "field", json_string(error->field));
        json_object_set_new(json, "error", why);
        put_line(bulk, json);
}

/* ---- requests ---- */

static void one_free(struct bulk_one *one)
{
        for (struct bulk_one **at = &one->bulk->first; *at; at = &(*at)->next)
                if (*at == one) {
                        *at = one->next;
                        break;
                }
        one->bulk->live--;
        share_charge_done(&one->body);
        json_decref(one->id);
        free(one);
}

struct log_context bulk_context(const struct bulk_one *one)
{
        return (struct log_context){
                .request = one->bulk->request_id, .trace = one->trace.id, .owner = one->bulk->tenant
        };
}

const char *bulk_key(const struct bulk_one *one)
{
        return one->bulk->key;
}

const struct trace *bulk_trace(const struct bulk_one *one)
{
        return &one->trace;
}

/* Its answer is written. */
static void end_one(struct bulk_one *one)
{
        struct bulk *bulk = one->bulk;
        one_free(one);
        if (!bulk->request && !bulk->live)
                bulk_free(bulk);
        else if (bulk->request && bulk->whole)
                send_some(bulk);
        else if (bulk->request)
                http_more(bulk->request);
}

static bool write_at(int fd, uint64_t at, const char *bytes, size_t len)
{
        return pwrite(fd, bytes, len, (off_t)at) == (ssize_t)len;
}

static void work_write(struct job *job)
{
        struct bulk_write *write = job->owner;
        uint64_t at = write->at;
        write->failed = !write_at(write->fd, at, write->head.bytes, write->head.len) ||
                !write_at(write->fd, at + write->head.len, write->text, write->len) ||
                !write_at(write->fd, at + write->head.len + write->len, "}\n", 2);
}

static void on_written(struct job *job)
{
        struct bulk_write *write = job->owner;
        struct bulk_one *one = write->one;
        if (job->dropped)
                work_write(job);
        one->bulk->broken = one->bulk->broken || write->failed;
        one->bulk->writes--;
        buf_done(&write->head);
        free(write->text);
        free(write);
        end_one(one);
}

/* Takes the text.  The line has its place in the file before the helper thread begins, so further lines can follow. */
static void write_line(struct bulk_one *one, const char *name, char *text, size_t len)
{
        struct bulk *bulk = one->bulk;
        json_t *json = answer_of(one->line, one->id);
        struct bulk_write *write = mem_alloc(sizeof *write);
        *write = (struct bulk_write){ .one = one, .fd = bulk->fd, .at = bulk->written, .text = text, .len = len };
        write->job = (struct job){ .work = work_write, .done = on_written, .owner = write };
        buf_init(&write->head, 4 * KIB);
        model_dump(json, false, &write->head);
        json_decref(json);
        write->head.len--;                 /* without its brace */
        buf_printf(&write->head, ",\"%s\":", name);
        bulk->written += write->head.len + len + 2;
        bulk->writes++;
        if (len > WRITE_AT_ONCE) {
                worker_submit(engine_workers(bulk->service->engine), bulk->tenant, &write->job);
                return;
        }
        work_write(&write->job);
        on_written(&write->job);
}

void bulk_fail(struct bulk_one *one, const struct csn_error *error)
{
        put_error(one->bulk, one->line, one->id, error);
        end_one(one);
}

void bulk_answer(struct bulk_one *one, const char *name, char *text, size_t len)
{
        struct csn_error err;
        if (text && one->bulk->request) {
                write_line(one, name, text, len);
                return;
        }
        if (!text) {
                err_set(&err, CSN_E_SYSTEM, 0, "the answer could not be written");
                bulk_fail(one, &err);
                return;
        }
        free(text);
        end_one(one);
}

static void cancel(struct bulk *bulk, json_t *id)
{
        for (struct bulk_one *one = bulk->first; one; one = one->next)
                if (one->id && json_equal(one->id, id))
                        bulk->kind->cancel(one->job);
}

static bool is_id(const json_t *id)
{
        return !id || json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= ID_MAX);
}

static void start(struct bulk *bulk, struct parse *parse)
{
        struct csn_error err;
        struct bulk_one *one = mem_alloc(sizeof *one);
        *one = (struct bulk_one){
                .next = bulk->first, .bulk = bulk, .id = json_incref(parse->id), .line = bulk->lines
        };
        one->body = (struct share_charge){ holder_ref(bulk->holder), SHARE_BODIES, bulk->charged };
        bulk->charged = 0;
        bulk->first = one;
        bulk->live++;
        trace_below(&bulk->trace, &one->trace);
        if (service_draining(bulk->service, &err) < 0 || bulk->kind->begin(bulk->request, one, parse, &one->job,
                                                                              &err) < 0) {
                one_free(one);
                put_error(bulk, bulk->lines, parse->id, &err);
        }
}

/* {"id": …, and a request}, or {"cancel": ID}. */
static void take_parsed(struct bulk *bulk, struct parse *parse)
{
        struct csn_error err;
        if (!is_id(parse->id)) {
                err_field(&err, "/id", "the id of a line is a text of at most %d bytes or a number", ID_MAX);
                put_error(bulk, bulk->lines, NULL, &err);
        } else if (parse->cancel) {
                cancel(bulk, parse->cancel);
        } else if (parse->error.code) {
                put_error(bulk, bulk->lines, parse->id, &parse->error);
        } else if (bulk->written > SPOOL_MAX) {
                err_set(&err, CSN_E_BUSY, 0,
                        "records of %llu GiB wait for this connection's end; send the rest in another request",
                        SPOOL_MAX / GIB);
                put_error(bulk, bulk->lines, parse->id, &err);
        } else {
                start(bulk, parse);
        }
        parse_free(parse);
}

/* The line is answered or handed on: give back its bytes, and keep no large buffer. */
static void drop_line(struct bulk *bulk)
{
        share_give(bulk->holder, SHARE_BODIES, bulk->charged);
        bulk->charged = 0;
        bulk->line.len = 0;
        if (bulk->line.size > LINE_KEPT)
                buf_done(&bulk->line);
}

static void on_parsed(void *owner)
{
        struct bulk *bulk = owner;
        struct parse *parse = bulk->parse;
        bulk->parse = NULL;
        take_parsed(bulk, parse);
        drop_line(bulk);
        if (bulk->whole)
                send_some(bulk);
        else
                http_more(bulk->request);
}

/* A long line goes to the parser whole; the next line gets a buffer of its own. */
static void take_line(struct bulk *bulk)
{
        size_t blank = strspn(bulk->line.bytes, " \t\r");
        bulk->lines++;
        if (blank == bulk->line.len)
                return;
        if (bulk->line.len <= PARSE_AT_ONCE_MAX) {
                take_parsed(bulk, parse_now(&bulk->kind->parse, bulk->line.bytes, bulk->line.len));
                return;
        }
        bulk->parse = parse_start(engine_workers(bulk->service->engine), bulk->tenant, &bulk->kind->parse,
                bulk->line.bytes, bulk->line.len, false, on_parsed, bulk);
        buf_init(&bulk->line, LINE_MAX_BYTES);
}

static void end_line(struct bulk *bulk)
{
        struct csn_error err;
        if (bulk->excess.code) {
                bulk->lines++;
                put_error(bulk, bulk->lines, NULL, &bulk->excess);
        } else if (bulk->too_long) {
                bulk->lines++;
                err_field(&err, "", "the line is longer than %llu MiB", LINE_MAX_BYTES / MIB);
                put_error(bulk, bulk->lines, NULL, &err);
        } else if (bulk->line.len) {
                take_line(bulk);
        } else {
                bulk->lines++;
        }
        if (!bulk->parse)
                drop_line(bulk);
        bulk->too_long = false;
        bulk->excess.code = 0;
}

/* ---- the body ---- */

/*
 * Add a part to the line.  false: lines in progress use up the share of the tenant; the part is taken at the end of a
 * line in progress.  Without lines in progress the whole line is refused.
 */
static bool add_part(struct bulk *bulk, const char *bytes, size_t len)
{
        struct csn_error err;
        if (bulk->too_long || bulk->excess.code)
                return true;
        if (bulk->line.len + len > LINE_MAX_BYTES) {
                drop_line(bulk);
                bulk->too_long = true;
                return true;
        }
        if (share_take(bulk->holder, SHARE_BODIES, len, &err) == 0) {
                bulk->charged += len;
                return buf_add(&bulk->line, bytes, len);
        }
        if (bulk->live)
                return false;
        drop_line(bulk);
        bulk->excess = err;
        return true;
}

static size_t take(struct http_request *request, const char *bytes, size_t len)
{
        struct bulk *bulk = request->owner;
        size_t taken = 0, lines = 0;
        while (taken < len && bulk->live < LIVE_MAX && !bulk->parse && lines < LINES_AT_ONCE) {
                const char *feed = memchr(bytes + taken, '\n', len - taken);
                size_t n = feed ? (size_t)(feed - bytes) - taken : len - taken;
                if (!add_part(bulk, bytes + taken, n))
                        break;
                taken += n + (feed != NULL);
                if (feed)
                        end_line(bulk);
                lines += feed != NULL;
        }
        if (lines == LINES_AT_ONCE && taken < len)
                loop_timer(bulk->service->loop, &bulk->resume, 0);
        return taken;
}

static void on_resume(struct timer *timer)
{
        const struct bulk *bulk = timer->owner;
        if (bulk->request && !bulk->whole)
                http_more(bulk->request);
}

static void on_whole(struct http_request *request)
{
        struct bulk *bulk = request->owner;
        if (bulk->line.len || bulk->too_long || bulk->excess.code)
                end_line(bulk);
        bulk->whole = true;
        request->room = on_room;
        http_stream(request, MHD_HTTP_OK, "application/x-ndjson");
        send_some(bulk);
}

static void on_gone(struct http_request *request)
{
        abandon(request->owner);
}

void bulk_begin(struct http_request *request, const struct bulk_kind *kind)
{
        struct service *service = service_of(request);
        struct csn_error err;
        int fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd < 0)
                fd = memfd_create("answers", MFD_CLOEXEC);
        if (fd < 0) {
                err_set(&err, CSN_E_SYSTEM, errno, "a place for the answers");
                http_fail(request, &err);
                return;
        }
        struct bulk *bulk = mem_alloc(sizeof *bulk);
        *bulk = (struct bulk){ .next = service->bulks,
                .service = service,
                .kind = kind,
                .request = request,
                .trace = request->trace,
                .fd = fd };
        bulk->resume = (struct timer){ .fired = on_resume, .owner = bulk };
        service->bulks = bulk;
        snprintf(bulk->tenant, sizeof bulk->tenant, "%s", request->tenant);
        snprintf(bulk->key, sizeof bulk->key, "%s", service_key(request) ? service_key(request)->id : "");
        snprintf(bulk->request_id, sizeof bulk->request_id, "%s", request->id);
        bulk->holder = holder_ref(request->holder);
        buf_init(&bulk->line, LINE_MAX_BYTES);
        service->live++;
        request->owner = bulk;
        request->gone = on_gone;
        request->take = take;
        request->whole = on_whole;
}

/* Clients with all lines sent get their records; other clients could have no answer before the end of their body. */
void bulks_cancel(struct service *service)
{
        for (struct bulk *bulk = service->bulks, *next; bulk; bulk = next) {
                struct http_request *request = bulk->request;
                next = bulk->next;
                if (request && !bulk->whole) {
                        request->gone = NULL;
                        http_drop(request);
                        abandon(bulk);
                } else {
                        cancel_all(bulk);
                }
        }
}
