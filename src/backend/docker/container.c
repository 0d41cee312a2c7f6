/* The life of a container; see container.h. */
#include "backend/docker/container.h"

#include <stdio.h>

#define CREATE_MS 60000L
#define PULL_MS 600000L
#define START_MS 60000L
#define INSPECT_MS 5000L
#define KILLED 137 /* exit status of a process that SIGKILL ended */

static const struct attach_events attach_events;
static const struct guest_link_events guest_link_events;

bool container_key_equal(const struct container_key *a, const struct container_key *b)
{
        return strcmp(a->image, b->image) == 0 && a->memory_bytes == b->memory_bytes && a->cpu_milli == b->cpu_milli &&
                a->pids == b->pids && a->disk_bytes == b->disk_bytes && a->disk_files == b->disk_files &&
                a->tmp_bytes == b->tmp_bytes;
}

/* ---- the end ---- */

static void container_free(struct container *container)
{
        struct backend_link *link = container->link;
        for (struct container **at = &link->containers; *at; at = &(*at)->next)
                if (*at == container) {
                        *at = container->next;
                        break;
                }
        docker_engine_unwait(link->engine, &container->wait);
        docker_call_stop(&container->call);
        guest_link_close(&container->guest);
        attach_close(&container->attach);
        loop_untimer(link->loop, &container->deadline);
        loop_untimer(link->loop, &container->removal);
        free(container);
}

static void on_removal(struct timer *timer)
{
        container_free(timer->owner);
}

void container_end(struct container *container)
{
        struct backend_link *link = container->link;
        bool unsure = container->state == CONTAINER_CREATING;
        if (container->state == CONTAINER_ENDED)
                return;
        container->state = CONTAINER_ENDED;
        docker_engine_unwait(link->engine, &container->wait);
        loop_untimer(link->loop, &container->deadline);
        if (container->created)
                docker_engine_remove(link->engine, container->name, unsure);
        /* The caller may be the container's own stream, so the memory is freed from the loop. */
        loop_timer(link->loop, &container->removal, 0);
}

void containers_remove(struct backend_link *link)
{
        uint64_t until_ms = clock_ms() + CONTAINERS_REMOVE_MS;
        for (struct container *container = link->containers, *next; container; container = next) {
                char name[CONTAINER_NAME_MAX];
                uint64_t now_ms = clock_ms();
                bool exists = container->created;
                next = container->next;
                memcpy(name, container->name, sizeof name);
                container_free(container);
                if (exists && now_ms < until_ms)
                        docker_engine_remove_now(link->engine, name, (long)(until_ms - now_ms));
        }
}

static void tell_end(struct container *container, const struct csn_error *why, bool for_memory)
{
        const struct csn_error copy = *why;
        loop_untimer(container->link->loop, &container->deadline);
        if (container->state != CONTAINER_ENDED)
                container->events->ended(container->owner, &copy, for_memory);
}

static void fail(struct container *container, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void fail(struct container *container, int code, const char *fmt, ...)
{
        struct csn_error err;
        char text[sizeof err.text];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        err_set(&err, code, 0, "%s", text);
        tell_end(container, &err, false);
}

static void on_deadline(struct timer *timer)
{
        static const char *const steps[] = { "agree on a version", "create the container", "fetch the image",
                "attach to the container", "start the container and hear its process 1" };
        struct container *container = timer->owner;
        if (container->state >= CONTAINER_READY) {
                fail(container, CSN_E_SYSTEM, "the container has waited for docker.warm_idle");
                return;
        }
        fail(container, CSN_E_SYSTEM,
                "backend_unreachable: the engine at %.200s did not %s in time (docker.start_timeout)",
                docker_engine_host(container->link->engine), steps[container->state]);
}

/* ---- creation ---- */

static void call(struct container *container, const char *method, const char *what, json_t *body, long ms,
        void (*done)(struct docker_call *call, const struct docker_reply *reply, const struct csn_error *error))
{
        char path[128];
        snprintf(path, sizeof path, "/containers/%s%s", container->name, what);
        container->call.done = done;
        container->call.owner = container;
        docker_call_start(container->link->engine, &container->call, method, path, body, ms);
}

static void create(struct container *container);

static void on_pulled(struct docker_call *pull, const struct docker_reply *reply, const struct csn_error *error)
{
        struct container *container = pull->owner;
        if (container->state == CONTAINER_ENDED)
                return;
        if (error)
                tell_end(container, error, false);
        else if (reply->status != 200)
                fail(container, CSN_E_CONFIG, "image_missing: the engine cannot fetch the image \"%.200s\": %.200s",
                        container->key.image, reply->message);
        else
                create(container);
}

static void pull(struct container *container)
{
        char *image = curl_easy_escape(NULL, container->key.image, 0);
        struct buf path;
        buf_init(&path, 4 * KIB);
        buf_printf(&path, "/images/create?fromImage=%s", image);
        /* Without a tag the engine would fetch all tags. */
        const char *slash = strrchr(container->key.image, '/');
        if (!strpbrk(slash ? slash : container->key.image, ":@"))
                buf_printf(&path, "&tag=latest");
        curl_free(image);
        container->pulled = true;
        container->state = CONTAINER_PULLING;
        container->call.done = on_pulled;
        container->call.owner = container;
        loop_timer(container->link->loop, &container->deadline, (uint64_t)PULL_MS * 1000);
        docker_call_start(container->link->engine, &container->call, "POST", path.bytes, NULL, PULL_MS);
        buf_done(&path);
}

static void on_created(struct docker_call *created, const struct docker_reply *reply, const struct csn_error *error)
{
        struct container *container = created->owner;
        const struct docker_settings *settings = container->link->settings;
        if (container->state == CONTAINER_ENDED)
                return;
        if (error) {
                tell_end(container, error, false);
        } else if (reply->status == 201) {
                container->state = CONTAINER_ATTACHING;
                attach_open(&container->attach, container->link->loop, container->link->engine, container->name,
                        &attach_events, container);
                guest_link_open(&container->guest, &container->attach, &guest_link_events, container);
        } else if (reply->status == 404 && strcasestr(reply->message, "image") &&
                settings->pull == docker_pull_MISSING && !container->pulled) {
                pull(container);
        } else if (reply->status == 404 && strcasestr(reply->message, "image")) {
                fail(container, CSN_E_CONFIG,
                        "image_missing: the engine has no image \"%.200s\": fetch it (docker pull), set docker.pull to missing, or name "
                        "another one in docker.image; the engine says: %.100s",
                        container->key.image, reply->message);
        } else if (reply->status >= 400 &&
                (strstr(reply->message, "tmpfs") || strstr(reply->message, "mount option")) &&
                !container->other_tmpfs) {
                container->link->other_tmpfs = true;
                create(container);
        } else {
                fail(container, CSN_E_SYSTEM,
                        "container_start_failed: the engine answers %ld to the creation: %.300s%s", reply->status,
                        reply->message,
                        strstr(reply->message, "bind source path")
                                ? "; the engine has other files than this program: put the folder lang of this installation into the image "
                                  "(COPY lang /opt/caisson), and set docker.guest to image"
                                : "");
        }
}

static void create(struct container *container)
{
        char path[128];
        container->state = CONTAINER_CREATING;
        container->created = true;
        container->other_tmpfs = container->link->other_tmpfs;
        loop_timer(container->link->loop, &container->deadline, container->link->settings->start_timeout * 1000);
        container->call.done = on_created;
        container->call.owner = container;
        snprintf(path, sizeof path, "/containers/create?name=%s", container->name);
        docker_call_start(container->link->engine, &container->call, "POST", path, container_body(container),
                CREATE_MS);
}

static void on_engine(void *owner, const struct csn_error *error)
{
        struct container *container = owner;
        if (error)
                tell_end(container, error, false);
        else
                create(container);
}

/* ---- why it ended ---- */

static void on_cause(struct docker_call *asked, const struct docker_reply *reply, const struct csn_error *error)
{
        struct container *container = asked->owner;
        if (container->state == CONTAINER_ENDED)
                return;
        const json_t *state = error ? NULL : json_object_get(reply->json, "State");
        long status = state ? (long)json_integer_value(json_object_get(state, "ExitCode")) : 0;
        /* Podman 4.3 reports no OOM kill.  Others send SIGKILL, too, so the container must have known such kills. */
        bool for_memory = state &&
                (json_is_true(json_object_get(state, "OOMKilled")) || (status == KILLED && container->facts.oom_kills));
        struct csn_error why = container->why;
        if (container->attach.errors_n)
                err_set(&why, why.code, 0, "%.250s; process 1 says: %.200s", container->why.text,
                        container->attach.errors);
        tell_end(container, &why, for_memory);
}

static void ask_why(struct container *container)
{
        container->state = CONTAINER_DYING;
        loop_untimer(container->link->loop, &container->deadline);
        call(container, "GET", "/json", NULL, INSPECT_MS, on_cause);
}

/* ---- start ---- */

static void look_if_ready(struct container *container)
{
        if (container->state != CONTAINER_STARTING || !container->has_facts || !container->has_report)
                return;
        container->state = CONTAINER_READY;
        loop_untimer(container->link->loop, &container->deadline);
        container->events->ready(container->owner);
}

static void on_facts(struct guest_op *op, const uint8_t *bytes, size_t len)
{
        struct container *container = op->owner;
        struct csn_error err;
        if (container->state == CONTAINER_ENDED)
                return;
        if (guest_kind_of(bytes, len) != GUEST_FACTS || guest_get_facts(bytes, len, &container->facts, &err) < 0) {
                fail(container, CSN_E_PROTOCOL, "process 1 of the container reports no facts");
                return;
        }
        guest_op_end(op);
        container->has_facts = true;
        look_if_ready(container);
}

static void on_report(struct docker_call *inspected, const struct docker_reply *reply, const struct csn_error *error)
{
        struct container *container = inspected->owner;
        if (container->state == CONTAINER_ENDED)
                return;
        if (error || reply->status != 200) {
                if (error)
                        tell_end(container, error, false);
                else
                        fail(container, CSN_E_SYSTEM,
                                "container_start_failed: the engine answers %ld to a question about the container: %.300s",
                                reply->status, reply->message);
                return;
        }
        container_read_report(reply->json, &container->report);
        container->has_report = true;
        look_if_ready(container);
}

/*
 * Ask process 1 for facts once process 1 has greeted and the engine has answered: the container has a single call at a
 * time.
 */
static void look_around(struct container *container)
{
        struct buf request;
        if (!container->started || !container->greeted)
                return;
        buf_init(&request, 64);
        container->facts_op.heard = on_facts;
        container->facts_op.owner = container;
        if (guest_put_number(&request, GUEST_FACTS, 0))
                guest_op_begin(&container->guest, &container->facts_op, &request);
        buf_done(&request);
        /* The stream may have ended during the send; then the engine is asked for the reason. */
        if (container->state == CONTAINER_STARTING)
                call(container, "GET", "/json", NULL, INSPECT_MS, on_report);
}

static void on_started(struct docker_call *started, const struct docker_reply *reply, const struct csn_error *error)
{
        struct container *container = started->owner;
        if (container->state == CONTAINER_ENDED)
                return;
        if (error) {
                tell_end(container, error, false);
        } else if (reply->status == 204 || reply->status == 304) {
                container->started = true;
                if (container->why.code)
                        ask_why(container);
                else
                        look_around(container);
        } else {
                bool lacks =
                        strstr(reply->message, "/opt/caisson/guest") || strstr(reply->message, "exec format error");
                fail(container, lacks ? CSN_E_CONFIG : CSN_E_SYSTEM,
                        "%s: the engine answers %ld to the start: %.300s%s",
                        lacks ? "image_unsuitable" : "container_start_failed", reply->status, reply->message,
                        lacks ? "; the image has to have the folder lang of this installation, of the same architecture: COPY lang "
                                "/opt/caisson"
                              : "");
        }
}

static void on_attached(void *owner)
{
        struct container *container = owner;
        if (container->state != CONTAINER_ATTACHING)
                return;
        container->state = CONTAINER_STARTING;
        call(container, "POST", "/start", NULL, START_MS, on_started);
}

static void on_greeted(void *owner)
{
        struct container *container = owner;
        if (container->greeted || container->state == CONTAINER_ENDED)
                return;
        container->greeted = true;
        look_around(container);
}

/* ---- news of the stream ---- */

static void on_output(void *owner, const uint8_t *bytes, size_t len)
{
        struct container *container = owner;
        if (container->state != CONTAINER_ENDED)
                guest_link_take(&container->guest, bytes, len);
}

static void on_sent(void *owner)
{
        const struct container *container = owner;
        if (container->state == CONTAINER_READY && container->events->sent)
                container->events->sent(container->owner);
}

static void on_broken(void *owner, const struct csn_error *error)
{
        tell_end(owner, error, false);
}

static void on_stream_end(void *owner, const struct csn_error *why)
{
        struct container *container = owner;
        if (container->state == CONTAINER_ENDED || container->state == CONTAINER_DYING)
                return;
        container->why = *why;
        if (container->state == CONTAINER_ATTACHING) {
                tell_end(container, why, false);
                return;
        }
        err_set(&container->why, CSN_E_SYSTEM, 0, "%s: %s",
                container->state == CONTAINER_READY ? "the container ended" : "container_start_failed", why->text);
        /* The engine's error text for a failed start is still to come. */
        if (container->state == CONTAINER_READY || container->started)
                ask_why(container);
}

static const struct attach_events attach_events = { on_attached, on_output, on_sent, on_stream_end };
static const struct guest_link_events guest_link_events = { on_greeted, on_broken };

struct container *container_new(struct backend_link *link, const struct container_key *key,
        const struct container_events *events, void *owner)
{
        char id[2 * 8 + 1];
        struct container *container = mem_alloc(sizeof *container);
        *container = (struct container){ .next = link->containers,
                .link = link,
                .key = *key,
                .events = events,
                .owner = owner,
                .wait = { .ready = on_engine, .owner = container },
                .deadline = { .fired = on_deadline, .owner = container },
                .removal = { .fired = on_removal, .owner = container } };
        hex_id(8, id);
        snprintf(container->name, sizeof container->name, "caisson-%s", id);
        link->containers = container;
        loop_timer(link->loop, &container->deadline, link->settings->start_timeout * 1000);
        docker_engine_wait(link->engine, &container->wait);
        return container;
}

void container_set_owner(struct container *container, const struct container_events *events, void *owner)
{
        container->events = events;
        container->owner = owner;
}
