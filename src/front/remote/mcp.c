/*
 * caisson mcp: the Model Context Protocol on standard input and output.
 *
 * A line is a message, sent to /mcp of the daemon as a request of HTTP; the answers become lines again.  So only the
 * daemon has a server of the protocol (mcp/mcp.h).  Without a listening daemon, or with settings of its own, the
 * command starts a daemon for its own lifetime.
 */
#include "front/remote/remote.h"

#include "backend/backend.h"
#include "front/socket/endpoint.h"
#include "net/jsonrpc.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define EXCHANGES_MAX 64
#define READY_MS 30000
#define LOOK_MS 20
#define END_MS 10000                       /* for the daemon of our own to end */
/* of LOOK_MS without any byte, after the end of the input and the last answer: 1.5 s */
#define GRACE_LOOKS 75
#define GRACE_US 5000000                   /* the same for a program still printing, and for a loaded host */
#define SIGNAL_MS 100                      /* between signals to the daemon */
#define SIGNALS_MAX 3
#define STEP_MS 1000
#define NOTE_MAX MIB                       /* a longer message is no notification */
#define MODERN "2026-07-28"
#define META_VERSION "io.modelcontextprotocol/protocolVersion"

struct exchange {
        struct exchange *next;
        struct bridge *bridge;
        CURL *easy;
        struct curl_slist *headers;
        char *body;
        json_t *id;                        /* NULL: nothing is answered */
        bool modern, begins, listens;      /* begins: the request is initialize */
        bool silent;                       /* the request was cancelled: no more output */
        bool answered;
        struct buf in;                     /* the answer, or its incomplete line */
};

struct bridge {
        struct link link;
        CURLM *multi;
        struct buf in;
        struct exchange *exchanges;
        size_t n;
        bool eof, over;
        int looks;                         /* without any byte since heard_us */
        uint64_t heard_us;                 /* time of the last request or answer, or of the end of the input */
        char session[80], version[20];
        int signals;
        /* The daemon of our own. */
        pid_t daemon;                      /* 0: there is none */
        char folder[64];
};

/* ---- lines out ---- */

static void print_line(struct bridge *bridge, const char *text, size_t len)
{
        if (io_write_all(STDOUT_FILENO, text, len) < 0 || io_write_all(STDOUT_FILENO, "\n", 1) < 0)
                bridge->over = true;       /* the reader has gone */
}

static void print_message(struct bridge *bridge, json_t *message)
{
        size_t len;
        char *text = rpc_line(message, &len);
        if (text)
                print_line(bridge, text, len);
        free(text);
}

/* The version chosen by the server in answer to initialize. */
static void note_version(struct bridge *bridge, const char *text, size_t len)
{
        struct csn_error err;
        struct rpc rpc;
        if (rpc_read(text, len, &rpc, &err) == 0 && rpc.kind == RPC_RESULT) {
                const char *version = json_string_value(json_object_get(rpc.result, "protocolVersion"));
                snprintf(bridge->version, sizeof bridge->version, "%s", version ? version : "");
        }
        rpc_done(&rpc);
}

/* Whether the message is the answer, and no notification before the answer. */
static bool is_answer(const char *text, size_t len)
{
        struct csn_error err;
        struct rpc rpc = { 0 };
        bool notifies = len <= NOTE_MAX && rpc_read(text, len, &rpc, &err) == 0 && rpc.kind == RPC_NOTIFICATION;
        rpc_done(&rpc);
        return !notifies;
}

static void note_progress(struct bridge *bridge)
{
        bridge->looks = 0;
        bridge->heard_us = clock_us();
}

static void pass_message(struct exchange *one, const char *text, size_t len)
{
        if (one->silent || !len)
                return;
        if (one->begins)
                note_version(one->bridge, text, len);
        if (!one->answered && is_answer(text, len)) {
                one->answered = true;
                note_progress(one->bridge);
        }
        print_line(one->bridge, text, len);
}

/* ---- answers of HTTP ---- */

static bool is_stream(CURL *easy)
{
        const char *type = NULL;
        curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
        return type && strncasecmp(type, "text/event-stream", 17) == 0;
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *owner)
{
        static const char data[] = "data: ";
        struct exchange *one = owner;
        if (!buf_add(&one->in, bytes, size * n))
                return 0;
        size_t from = 0;
        if (!is_stream(one->easy))
                return size * n;
        for (char *end; (end = memchr(one->in.bytes + from, '\n', one->in.len - from));
                from = (size_t)(end - one->in.bytes) + 1) {
                const char *line = one->in.bytes + from;
                size_t len = (size_t)(end - line), skip = sizeof data - 1;
                if (len > skip && memcmp(line, data, skip) == 0)
                        pass_message(one, line + skip, len - skip);
        }
        memmove(one->in.bytes, one->in.bytes + from, one->in.len - from);
        one->in.len -= from;
        return size * n;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *owner)
{
        static const char name[] = "Mcp-Session-Id:";
        struct exchange *one = owner;
        size_t len = size * n, skip = sizeof name - 1;
        if (one->begins && len > skip && strncasecmp(bytes, name, skip) == 0) {
                char value[80];
                snprintf(value, sizeof value, "%.*s", (int)(len - skip), bytes + skip);
                sscanf(value, " %79[0-9a-zA-Z_-]", one->bridge->session);
        }
        return size * n;
}

/* ---- exchanges ---- */

static void exchange_free(struct exchange *one)
{
        struct bridge *bridge = one->bridge;
        for (struct exchange **at = &bridge->exchanges; *at; at = &(*at)->next)
                if (*at == one) {
                        *at = one->next;
                        break;
                }
        bridge->n--;
        curl_multi_remove_handle(bridge->multi, one->easy);
        curl_easy_cleanup(one->easy);
        curl_slist_free_all(one->headers);
        json_decref(one->id);
        buf_done(&one->in);
        free(one->body);
        free(one);
}

/* The answer is whole, or there is none. */
static void exchange_over(struct exchange *one, CURLcode code)
{
        struct csn_error err;
        struct rpc rpc = { 0 };
        long status = 0;
        curl_easy_getinfo(one->easy, CURLINFO_RESPONSE_CODE, &status);
        bool json = code == CURLE_OK && !is_stream(one->easy) && one->in.len;
        if (json && rpc_read(one->in.bytes, one->in.len, &rpc, &err) == 0 && one->id)
                pass_message(one, one->in.bytes, one->in.len);
        rpc_done(&rpc);
        if (one->id && !one->answered && !one->silent) {
                if (code != CURLE_OK)
                        link_broken(&one->bridge->link, code, &err);
                else
                        link_problem(status, one->in.bytes, one->in.len, &err);
                print_message(one->bridge, rpc_error(one->id, RPC_INTERNAL_ERROR, err.text, NULL));
        }
        exchange_free(one);
}

/* A name in a form allowed in a header. */
static char *header_value(const char *text, struct arena *arena)
{
        size_t len = strlen(text);
        bool plain = len && text[0] != ' ' && text[len - 1] != ' ' && strncmp(text, "=?base64?", 9) != 0;
        for (size_t i = 0; plain && i < len; i++)
                plain = text[i] >= ' ' && text[i] < 0x7f;
        return plain ? arena_text(arena, "%s", text)
                     : arena_text(arena, "=?base64?%s?=", model_base64(arena, text, len));
}

static void add_header(struct exchange *one, struct arena *arena, const char *name, const char *value)
{
        one->headers = curl_slist_append(one->headers, arena_text(arena, "%s: %s", name, value));
}

static void add_headers(struct exchange *one, const struct rpc *rpc, const char *version)
{
        const struct bridge *bridge = one->bridge;
        struct arena arena = { 0 };
        const char *name = json_string_value(json_object_get(rpc->params, "name")),
                   *uri = json_string_value(json_object_get(rpc->params, "uri"));
        add_header(one, &arena, "Content-Type", "application/json");
        add_header(one, &arena, "Accept", "application/json, text/event-stream");
        one->headers = curl_slist_append(one->headers, "Expect:");
        if (version) {
                add_header(one, &arena, "MCP-Protocol-Version", header_value(version, &arena));
                add_header(one, &arena, "Mcp-Method", header_value(rpc->method, &arena));
                if (strcmp(rpc->method, "resources/read") == 0 ? uri != NULL : name != NULL)
                        add_header(one, &arena, "Mcp-Name",
                                header_value(strcmp(rpc->method, "resources/read") == 0 ? uri : name, &arena));
        } else if (!one->begins) {
                if (bridge->version[0])
                        add_header(one, &arena, "MCP-Protocol-Version", bridge->version);
                if (bridge->session[0])
                        add_header(one, &arena, "Mcp-Session-Id", bridge->session);
        }
        arena_done(&arena);
}

static void send_message(struct bridge *bridge, const struct rpc *rpc, const char *text, size_t len)
{
        const char *version = json_string_value(json_object_get(json_object_get(rpc->params, "_meta"), META_VERSION));
        struct exchange *one = mem_alloc(sizeof *one);
        *one = (struct exchange){ .next = bridge->exchanges,
                .bridge = bridge,
                .easy = link_request(&bridge->link, "POST", "/mcp"),
                .body = mem_copy(text, len),
                .modern = version != NULL };
        one->id = rpc->kind == RPC_REQUEST ? json_incref(rpc->id) : NULL;
        one->begins = rpc->kind == RPC_REQUEST && strcmp(rpc->method, "initialize") == 0 && !version;
        one->listens = rpc->method && strcmp(rpc->method, "subscriptions/listen") == 0;
        buf_init(&one->in, 2 * RPC_TEXT_MAX);
        bridge->exchanges = one;
        bridge->n++;
        note_progress(bridge);
        if (rpc->method)
                add_headers(one, rpc, version);
        curl_easy_setopt(one->easy, CURLOPT_HTTPHEADER, one->headers);
        curl_easy_setopt(one->easy, CURLOPT_POSTFIELDS, one->body);
        curl_easy_setopt(one->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
        curl_easy_setopt(one->easy, CURLOPT_WRITEFUNCTION, on_bytes);
        curl_easy_setopt(one->easy, CURLOPT_WRITEDATA, one);
        curl_easy_setopt(one->easy, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(one->easy, CURLOPT_HEADERDATA, one);
        curl_easy_setopt(one->easy, CURLOPT_PRIVATE, one);
        curl_multi_add_handle(bridge->multi, one->easy);
}

/* In the newer revision the end of the connection cancels a request; in the older revision the message does. */
static void cancel(struct bridge *bridge, const struct rpc *rpc, const char *text, size_t len)
{
        json_t *id = json_object_get(rpc->params, "requestId");
        struct exchange *one = bridge->exchanges;
        while (one && !rpc_same_id(one->id, id))
                one = one->next;
        if (!one)
                return;
        one->silent = true;
        if (one->modern)
                exchange_free(one);
        else
                send_message(bridge, rpc, text, len);
}

/* ---- lines in ---- */

static void take_line(struct bridge *bridge, const char *text, size_t len)
{
        struct csn_error err;
        struct rpc rpc;
        if (strspn(text, " \t\r") >= len)
                return;
        if (rpc_read(text, len, &rpc, &err) < 0)
                print_message(bridge, rpc_error(rpc.id, rpc.code, err.text, NULL));
        else if (rpc.kind == RPC_NOTIFICATION && strcmp(rpc.method, "notifications/cancelled") == 0)
                cancel(bridge, &rpc, text, len);
        else if (rpc.kind == RPC_REQUEST || rpc.kind == RPC_NOTIFICATION)
                send_message(bridge, &rpc, text, len);
        rpc_done(&rpc);
}

/* Nothing goes on before a session has begun, and never more than so many at once. */
static bool may_send(const struct bridge *bridge)
{
        for (const struct exchange *one = bridge->exchanges; one; one = one->next)
                if (one->begins)
                        return false;
        return bridge->n < EXCHANGES_MAX;
}

static void take_lines(struct bridge *bridge)
{
        size_t from = 0;
        char *end;
        while (!bridge->over && may_send(bridge) && from < bridge->in.len &&
                (end = memchr(bridge->in.bytes + from, '\n', bridge->in.len - from))) {
                *end = 0;
                take_line(bridge, bridge->in.bytes + from, (size_t)(end - bridge->in.bytes) - from);
                from = (size_t)(end - bridge->in.bytes) + 1;
        }
        if (from) {
                memmove(bridge->in.bytes, bridge->in.bytes + from, bridge->in.len - from);
                bridge->in.len -= from;
        }
}

/* The last message need not have a line end. */
static void end_last_line(struct bridge *bridge)
{
        if (bridge->in.len && bridge->in.bytes[bridge->in.len - 1] != '\n')
                buf_add(&bridge->in, "\n", 1);
}

static void read_more(struct bridge *bridge)
{
        static char bytes[256 * KIB];
        ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return;
        if (n <= 0) {
                bridge->eof = true;
                note_progress(bridge);
                end_last_line(bridge);
        } else if (!buf_add(&bridge->in, bytes, (size_t)n)) {
                print_message(bridge, rpc_error(NULL, RPC_PARSE_ERROR, "a line is longer than a message may be", NULL));
                bridge->over = true;
        }
}

/* Whether an answer is missing; subscriptions/listen has no end. */
static bool waits(const struct bridge *bridge)
{
        for (const struct exchange *one = bridge->exchanges; one; one = one->next)
                if (!one->listens)
                        return true;
        return memchr(bridge->in.bytes ? bridge->in.bytes : "", '\n', bridge->in.len) != NULL;
}

/*
 * A client has gone at the end of the input, or has sent all of its requests: a request not answered soon is cancelled.
 * Looks are counted beside time, because a loaded host is late with answers and with looks alike.
 */
static void end_waiting(struct bridge *bridge, bool silent)
{
        bridge->looks += silent;
        if (bridge->eof && (bridge->looks > GRACE_LOOKS || clock_us() - bridge->heard_us >= GRACE_US))
                bridge->over = true;
}

static void step(struct bridge *bridge)
{
        bool reads = !bridge->eof && may_send(bridge);
        struct curl_waitfd fds[] = { { .fd = bridge->signals, .events = CURL_WAIT_POLLIN },
                { .fd = STDIN_FILENO, .events = CURL_WAIT_POLLIN } };
        CURLMsg *message;
        int running, left, events = 0;
        curl_multi_poll(bridge->multi, fds, reads ? 2 : 1, bridge->eof ? LOOK_MS : STEP_MS, &events);
        if (fds[0].revents)
                bridge->over = true;
        if (reads && fds[1].revents)
                read_more(bridge);
        curl_multi_perform(bridge->multi, &running);
        while ((message = curl_multi_info_read(bridge->multi, &left))) {
                struct exchange *one = NULL;
                CURLcode code = message->data.result;
                curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&one);
                exchange_over(one, code);
        }
        take_lines(bridge);
        end_waiting(bridge, events == 0);
}

/*
 * Closes the connections of unanswered requests, by which the daemon ends the runs.  A remaining reader gets an error
 * for each.
 */
static void drop_exchanges(struct bridge *bridge)
{
        for (struct exchange *one = bridge->exchanges, *next; one; one = next) {
                next = one->next;
                if (bridge->eof && one->id && !one->listens && !one->silent && !one->answered)
                        print_message(bridge,
                                rpc_error(one->id, RPC_INTERNAL_ERROR,
                                        "the input has ended, and what was asked for was cancelled", NULL));
                exchange_free(one);
        }
}

/* The session ends with us, and not an hour later. */
static void end_session(struct bridge *bridge)
{
        CURL *easy = bridge->session[0] ? link_request(&bridge->link, "DELETE", "/mcp") : NULL;
        if (!easy)
                return;
        char text[120];
        snprintf(text, sizeof text, "Mcp-Session-Id: %s", bridge->session);
        struct curl_slist *headers = curl_slist_append(NULL, text);
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 2000L);
        curl_easy_setopt(easy, CURLOPT_NOBODY, 0L);
        curl_easy_perform(easy);
        curl_slist_free_all(headers);
        curl_easy_cleanup(easy);
}

static int converse(struct bridge *bridge, struct csn_error *err)
{
        signal(SIGPIPE, SIG_IGN);
        bridge->signals = io_signals(io_ends, IO_ENDS, err);
        if (bridge->signals < 0)
                return -err->code;
        bridge->multi = curl_multi_init();
        buf_init(&bridge->in, RPC_TEXT_MAX + KIB);
        while (!bridge->over && !(bridge->eof && !waits(bridge)))
                step(bridge);
        drop_exchanges(bridge);
        end_session(bridge);
        curl_multi_cleanup(bridge->multi);
        buf_done(&bridge->in);
        fd_close(&bridge->signals);
        return 0;
}

/* ---- a daemon of our own ---- */

static pid_t start_daemon(const struct cli_settings *from, const char *folder, struct arena *arena,
        struct csn_error *err)
{
        const char *argv[2 * ARRAY_LEN(from->flags) + 20] = { "caissond" };
        const char *const own[] = { arena_text(arena, "engine.socket=%s/in/s", folder),
                arena_text(arena, "engine.http=unix:%s/in/web", folder),
                arena_text(arena, "engine.state_dir=%s/state", folder), "engine.http_keyless=true",
                "engine.log_bytes=0" };
        size_t n = 1;
        if (from->file) {
                argv[n++] = "--config";
                argv[n++] = from->file;
        }
        for (size_t i = 0; i < from->flags_n + ARRAY_LEN(own); i++) {
                argv[n++] = "--set";
                argv[n++] = i < from->flags_n ? from->flags[i] : own[i - from->flags_n];
        }
        pid_t parent = getpid(), pid = fork();
        if (pid < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "fork");
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGTERM);
                if (getppid() != parent)
                        _exit(125);
                dup2(STDERR_FILENO, STDOUT_FILENO);   /* standard output is for messages alone */
                int none = open("/dev/null", O_RDONLY);
                dup2(none, STDIN_FILENO);
                execv(backend_daemon(), (char *const *)(uintptr_t)argv);
                fprintf(stderr, "caisson: %s: %s\n", backend_daemon(), strerrordesc_np(errno));
                _exit(125);
        }
        return pid;
}

static int start_own(struct bridge *bridge, const struct cli_settings *from, struct settings *settings,
        struct csn_error *err)
{
        struct arena arena = { 0 };
        snprintf(bridge->folder, sizeof bridge->folder, "/tmp/caisson-mcp-XXXXXX");
        if (!mkdtemp(bridge->folder)) {
                bridge->folder[0] = 0;
                return err_set(err, CSN_E_SYSTEM, errno, "make a folder in /tmp");
        }
        /*
         * The state goes to the user of a daemon started by root, who has to pass the folder; the sockets are for the
         * owner alone.
         */
        char in[sizeof bridge->folder + 4];
        snprintf(in, sizeof in, "%s/in", bridge->folder);
        if (mkdir(in, 0700) < 0 || (geteuid() == 0 && chmod(bridge->folder, 0711) < 0))
                return err_set(err, CSN_E_SYSTEM, errno, "make a folder in %s", bridge->folder);
        bridge->daemon = start_daemon(from, bridge->folder, &arena, err);
        arena_done(&arena);
        if (bridge->daemon < 0)
                return -err->code;
        settings->engine.socket = arena_text(&settings->arena, "%s/in/s", bridge->folder);
        for (int ms = 0; ms < READY_MS; ms += LOOK_MS) {
                siginfo_t info = { 0 };
                if (link_open(&bridge->link, settings, err) == 0)
                        return 0;
                if (waitid(P_PID, (id_t)bridge->daemon, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                        info.si_pid == bridge->daemon)
                        return err_set(err, CSN_E_SYSTEM, 0,
                                "the daemon of our own has ended; what it says stands above");
                poll(NULL, 0, LOOK_MS);
        }
        return err_set(err, CSN_E_SYSTEM, 0, "the daemon of our own is not ready after %d s", READY_MS / 1000);
}

/* The first signal drains the daemon, the second cancels running work, and the third ends the daemon at once. */
static void stop_own(struct bridge *bridge)
{
        if (bridge->daemon > 0) {
                bool runs = true;
                for (int ms = 0; ms < END_MS && (runs = waitpid(bridge->daemon, NULL, WNOHANG) == 0); ms += LOOK_MS) {
                        if (ms % SIGNAL_MS == 0 && ms < SIGNALS_MAX * SIGNAL_MS)
                                kill(bridge->daemon, SIGTERM);
                        poll(NULL, 0, LOOK_MS);
                }
                if (runs) {
                        kill(bridge->daemon, SIGKILL);
                        waitpid(bridge->daemon, NULL, 0);
                }
        }
        if (bridge->folder[0])
                io_remove_tree(AT_FDCWD, bridge->folder);
}

/* ---- in order ---- */

static int take_option(void *owner, const char *name, const char *value, struct csn_error *err)
{
        const char **word = owner;
        (void)name;
        if (strcmp(value, "auto") != 0 && strcmp(value, "never") != 0 && strcmp(value, "always") != 0)
                return err_field(err, "--daemon", "--daemon is \"%.40s\"; it has to be auto, never or always", value);
        *word = value;
        return 0;
}

static int find_daemon(struct bridge *bridge, const char *word, const struct cli_settings *from,
        struct settings *settings, struct csn_error *err)
{
        bool own = from->file || from->flags_n;
        if (strcmp(word, "always") == 0)
                return link_open(&bridge->link, settings, err);
        if (strcmp(word, "auto") == 0 && !own && link_open(&bridge->link, settings, err) == 0)
                return 0;
        return start_own(bridge, from, settings, err);
}

int remote_mcp(int argc, char **argv)
{
        struct cli_settings from;
        struct settings settings;
        struct bridge bridge = { .signals = -1 };
        struct csn_error err;
        const char *variable = getenv("CAISSON_DAEMON"), *word = variable && variable[0] ? variable : "auto";
        argc = cli_take_settings(argc, argv, &from);
        if (argc < 0)
                return 64;
        if (cli_parse(cli_mcp_options, argc, argv, take_option, &word, &err) < 0)
                return cli_fail(&err);
        if (optind < argc)
                return cli_usage("mcp takes options only, and not \"%.60s\"", argv[optind]);
        int status = cli_load_settings(&from, &settings);
        if (status)
                return status;
        int rc = find_daemon(&bridge, word, &from, &settings, &err);
        if (rc == 0)
                rc = converse(&bridge, &err);
        link_close(&bridge.link);
        stop_own(&bridge);
        settings_done(&settings);
        return rc < 0 ? cli_fail(&err) : 0;
}
