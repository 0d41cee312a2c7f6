/* The pipes and the private channel of a run. */
#include "engine/run/run_private.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#define READ_SIZE (64 * KIB)
#define REFUSALS_TOLD 20       /* warnings about refused connections, of LAUNCH_WARNINGS_MAX */

/* ---- output ---- */

void run_printed(struct run *run, int number, const void *bytes, size_t len)
{
        struct stream *stream = &run->streams[number - 1];
        capture_add(&stream->capture, bytes, len);
        if (run->events->output)
                run->events->output(run->owner, number, bytes, len);
        const struct limits *limits = &run->launch.request.limits;
        if (limits->output_action == output_action_KILL && stream->capture.total > limits->output_bytes &&
                !run->output_killed) {
                run->output_killed = true;
                run_kill(run);
        }
}

/* One read.  False: no data now, or the end of the stream. */
static bool read_stream(struct stream *stream)
{
        struct run *run = stream->run;
        static char bytes[READ_SIZE];
        ssize_t n = read(stream->watch.fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
                return true;
        if (n == 0)
                loop_unwatch(run->engine->loop, &stream->watch);
        if (n <= 0)
                return false;
        run_printed(run, stream->number, bytes, (size_t)n);
        return true;
}

static void stream_ready(struct watch *watch, uint32_t events)
{
        struct stream *stream = watch->owner;
        (void)events;
        if (stream->run->state < RUN_RECORDING)
                read_stream(stream);   /* as much as a pipe holds; for more the loop calls again */
}

/* ---- private channel ---- */

static bool read_channel(struct run *run)
{
        static uint8_t frame[CHANNEL_FRAME_MAX + 1];
        struct csn_error err;
        ssize_t n = wire_receive_packet(run->channel_watch.fd, frame, sizeof frame, 0);
        if (n < 0 && errno == EAGAIN)
                return false;
        if (n <= 0 || channel_take(&run->channel, frame, (size_t)n, &err) < 0) {
                /*
                 * The end of the channel, or misuse: the channel is closed and the run goes on.  An open channel
                 * without a reader would fill, and the program would wait until its time-out.
                 */
                loop_unwatch(run->engine->loop, &run->channel_watch);
                fd_close(&run->channel_watch.fd);
                queue_started(run);
                if (n > 0 && run->message_handler) {
                        if (run->message_handler->protocol_error)
                                run->message_handler->protocol_error(run->message_handler_owner);
                        run_kill(run);   /* the message handler waits for an answer */
                }
                return false;
        }
        /* The time of the frame is unknown once the program has ended. */
        if (!run->parsed_us && run->instance && (frame[4] == CHANNEL_STARTED || frame[4] == CHANNEL_SYNTAX))
                run->parsed_us = clock_us();
        queue_started(run);
        run_take_message(run, frame[4]);
        int status = channel_exit_status(&run->channel);
        if (status >= 0 && run->instance)
                instance_exiting(run->instance, (unsigned)status);
        return true;
}

static void channel_ready(struct watch *watch, uint32_t events)
{
        struct run *run = watch->owner;
        if (run->state >= RUN_RECORDING)
                return;
        if (events & EPOLLOUT && send_queue_flush(&run->said) < 0)
                send_queue_done(&run->said);   /* its end is read next */
        if (!run->said.held || events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                read_channel(run);
}

void run_drain(struct run *run)
{
        for (int i = 0; i < 2; i++)
                while (run->streams[i].watch.active && read_stream(&run->streams[i]))
                        ;
        while (run->channel_watch.active && read_channel(run))
                ;
}

/* ---- network and tools ---- */

static void on_connection(void *owner, const char *host, unsigned port, const char *refusal)
{
        struct run *run = owner;
        /* The program causes refusals, and could push other warnings out. */
        if (refusal && run->refusals++ < REFUSALS_TOLD)
                run_warn(run, "connection_refused", "the proxy refused %.100s:%u: %s", host, port, refusal);
}

int run_read_private_hosts(struct engine *engine, struct csn_error *err)
{
        struct arena *arena = &engine->arena;
        const char *setting = engine->settings->engine.private_hosts;
        char *rest = arena_copy(arena, setting, strlen(setting));
        struct csn_error why;
        engine->private_hosts = arena_alloc(arena, (strlen(setting) / 2 + 1) * sizeof *engine->private_hosts);
        for (char *entry; (entry = strtok_r(rest, ", \t", &rest));) {
                if (egress_check_private(entry, &why) < 0) {
                        err_field(err, "engine.private_hosts", "engine.private_hosts: %.300s", why.text);
                        return -(err->code = CSN_E_CONFIG);
                }
                engine->private_hosts[engine->private_hosts_n++] = entry;
        }
        return 0;
}

/* Without its proxy the program has no network, and cannot know the reason: the warning has the reason. */
static void open_proxy(struct run *run, int proxy_fd)
{
        static const struct egress_events events = { on_connection };
        const struct run_request *request = &run->launch.request;
        const struct egress_rules rules = { .public_ = request->network == network_PUBLIC, .hosts = request->allow,
                                            .hosts_n = request->allow_n,
                                            .private_hosts = run->engine->private_hosts,
                                            .private_hosts_n = run->engine->private_hosts_n };
        struct csn_error err;
        if (run->network) {
                run->network->serve(run->network_owner, proxy_fd);
                return;
        }
        if (egress_open(run->engine->loop, proxy_fd, &rules, &events, run, &run->egress, &err) < 0) {
                run->no_proxy = true;
                run_warn(run, "proxy_failed", "the program has no network: %s", err.text);
        }
}

/* Without its tools the program can only fail: the warning has the reason. */
static void open_tool_socket(struct run *run, int tool_socket_fd)
{
        struct csn_error err;
        if (tool_session_serve(&run->tool_session, run->engine->loop, tool_socket_fd, &err) < 0)
                run_warn(run, "tools_failed", "the program has no tools: %s", err.text);
}

/* ---- beginning and end ---- */

static int attach_stream(struct stream *stream, struct run *run, int number, int fd, struct csn_error *err)
{
        stream->watch = (struct watch){ .fd = fd, .ready = stream_ready, .owner = stream };
        stream->run = run;
        stream->number = number;
        return loop_watch(run->engine->loop, &stream->watch, fd, EPOLLIN, err);
}

void run_attach(struct run *run, struct instance *instance)
{
        struct csn_error err;
        run->home_fd = take_fd(&instance->ends.home);
        run->channel_watch =
                (struct watch){ .fd = take_fd(&instance->ends.channel), .ready = channel_ready, .owner = run };
        if (attach_stream(&run->streams[0], run, 1, take_fd(&instance->ends.out), &err) < 0 ||
            attach_stream(&run->streams[1], run, 2, take_fd(&instance->ends.error), &err) < 0 ||
            loop_watch(run->engine->loop, &run->channel_watch, run->channel_watch.fd, EPOLLIN, &err) < 0) {
                run_warn(run, "output_lost", "%s", err.text);
                run_kill(run);
        }
        if (instance->ends.proxy >= 0)
                open_proxy(run, take_fd(&instance->ends.proxy));
        if (instance->ends.tool_socket >= 0)
                open_tool_socket(run, take_fd(&instance->ends.tool_socket));
}

void run_stop_io(struct run *run)
{
        struct loop *loop = run->engine->loop;
        for (int i = 0; i < 2; i++)
                loop_unwatch(loop, &run->streams[i].watch);
        loop_unwatch(loop, &run->channel_watch);
}

void run_close_io(struct run *run)
{
        run_stop_io(run);
        for (int i = 0; i < 2; i++)
                fd_close(&run->streams[i].watch.fd);
        fd_close(&run->channel_watch.fd);
        send_queue_done(&run->said);
        fd_close(&run->handoff_fd);
}
