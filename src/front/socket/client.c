/* Our side of a connection to caissond; see client.h. */
#include "front/socket/client.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define THE_ID 1
#define READS_AT_ONCE 16

struct client {
        struct loop *loop;
        const struct client_events *events;
        void *owner;
        char path[ENDPOINT_PATH_MAX];
        struct watch watch;
        struct frame_reader reader;
        struct buf out;
        size_t sent;
        bool over;
};

/* ---- frames ---- */

static void fail(struct client *client, const struct csn_error *error, bool refused)
{
        client->over = true;
        loop_unwatch(client->loop, &client->watch);
        client->events->failed(client->owner, error, refused);
}

static void watch_again(struct client *client)
{
        struct csn_error err;
        uint32_t events = EPOLLIN | (client->sent < client->out.len ? EPOLLOUT : 0);
        if (!client->over && loop_watch(client->loop, &client->watch, client->watch.fd, events, &err) < 0)
                fail(client, &err, false);
}

static int take_output(struct client *client, const struct buf *payload, struct csn_error *err)
{
        int stream = (unsigned char)payload->bytes[0];
        if (stream != 1 && stream != 2)
                return err_set(err, CSN_E_PROTOCOL, 0, "the daemon sent output of stream %d", stream);
        client->events->output(client->owner, stream, payload->bytes + 1, payload->len - 1);
        return 0;
}

static int take_frame(struct client *client, struct csn_error *err)
{
        const struct buf *payload = &client->reader.payload;
        struct csn_error told;
        switch (client->reader.frame.type) {
        case FRAME_OUTPUT:
                return take_output(client, payload, err);
        case FRAME_ERROR:
                frame_get_error(payload->bytes, payload->len, &told);
                fail(client, &told, true);
                return 0;
        default:
                client->events->answer(client->owner, client->reader.frame.type, payload->bytes, payload->len);
                return 0;
        }
}

static void take_bytes(struct client *client, const uint8_t *bytes, size_t len)
{
        struct csn_error err;
        for (int step = FRAME_BEGUN; step != FRAME_MORE && !client->over;) {
                step = frame_read(&client->reader, &bytes, &len, &err);
                if (step == FRAME_WHOLE && take_frame(client, &err) < 0)
                        step = -err.code;
                if (step < 0) {
                        fail(client, &err, false);
                        return;
                }
        }
}

static void read_some(struct client *client)
{
        static uint8_t bytes[64 * KIB];
        struct csn_error err;
        for (int i = 0; i < READS_AT_ONCE && !client->over; i++) {
                ssize_t n = read(client->watch.fd, bytes, sizeof bytes);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n <= 0) {
                        err_set(&err, CSN_E_SYSTEM, n < 0 ? errno : 0, "the daemon at %s ended the connection",
                                client->path);
                        fail(client, &err, false);
                        return;
                }
                take_bytes(client, bytes, (size_t)n);
        }
}

/* A daemon that does not want us may have closed already; what it said of that is still to be read. */
static void write_some(struct client *client)
{
        while (client->sent < client->out.len) {
                ssize_t n = send(client->watch.fd, client->out.bytes + client->sent, client->out.len - client->sent,
                        MSG_NOSIGNAL);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n < 0)
                        break;
                client->sent += (size_t)n;
        }
        client->sent = 0;
        buf_done(&client->out);
}

static void client_ready(struct watch *watch, uint32_t events)
{
        struct client *client = watch->owner;
        if (events & EPOLLOUT)
                write_some(client);
        read_some(client);
        watch_again(client);
}

/* ---- in order ---- */

static int connect_somewhere(struct client *client, const struct settings *settings, struct csn_error *err)
{
        const char *set = settings->engine.socket;
        bool elsewhere = geteuid() != 0 && !(set && set[0]);
        int rc = endpoint_path(settings, false, client->path)
                ? endpoint_connect(client->path, &client->watch.fd, err)
                : err_set(err, CSN_E_SYSTEM, 0,
                          "engine.socket is too long; or it is empty, there is no XDG_RUNTIME_DIR, and /tmp/caisson-%u is no folder of this user alone",
                          geteuid());
        if (rc < 0 && elsewhere && endpoint_path(settings, true, client->path))
                rc = endpoint_connect(client->path, &client->watch.fd, err);
        return rc;
}

int client_open(struct loop *loop, const struct settings *settings, const struct client_events *events, void *owner,
                struct client **ret, struct csn_error *err)
{
        struct client *client = mem_alloc(sizeof *client);
        *client = (struct client){ .loop = loop, .events = events, .owner = owner };
        client->watch = (struct watch){ .fd = -1, .ready = client_ready, .owner = client };
        buf_init(&client->out, FRAME_REQUEST_MAX + 4 * FRAME_HEADER);
        frame_reader_init(&client->reader, FROM_DAEMON);
        if (connect_somewhere(client, settings, err) < 0 ||
                loop_watch(loop, &client->watch, client->watch.fd, EPOLLIN, err) < 0) {
                client_close(client);
                return -err->code;
        }
        *ret = client;
        return 0;
}

const char *client_path(const struct client *client)
{
        return client->path;
}

void client_send(struct client *client, enum frame_type type, const char *text, size_t len)
{
        uint8_t head[FRAME_HEADER];
        const struct frame frame = { .len = (uint32_t)len, .id = THE_ID, .type = type };
        frame_put(head, &frame);
        /* The ceiling has room for one request and its cancelling; more than that is not asked at a time. */
        if (!client->over && client->out.max - client->out.len >= len + FRAME_HEADER) {
                buf_add(&client->out, head, sizeof head);
                buf_add(&client->out, text, len);
                watch_again(client);
        }
}

void client_close(struct client *client)
{
        if (!client)
                return;
        loop_unwatch(client->loop, &client->watch);
        fd_close(&client->watch.fd);
        frame_reader_done(&client->reader);
        buf_done(&client->out);
        free(client);
}
