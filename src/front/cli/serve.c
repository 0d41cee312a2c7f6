/* caisson serve: caissond in the foreground, for a trial. */
#include "front/cli/cli.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "backend/backend.h"
#include "config.h"

#define READY_MS 30000
#define LOOK_MS 50

const struct cli_option cli_serve_options[] = {
        { "listen", 0, "ADDRESS", "Where: HOST:PORT, [::1]:PORT or unix:/path. [127.0.0.1:8080]", NULL },
        { "keys", 0, NULL, "Answer those who have a key only, as it is always where others can reach the address.",
                NULL },
        { NULL, 0, NULL, NULL, NULL },
};

struct serve_cli {
        const char *address;
        bool keys;
};

static int take_option(void *owner, const char *name, const char *value, struct csn_error *err)
{
        struct serve_cli *cli = owner;
        (void)err;
        if (strcmp(name, "listen") == 0)
                cli->address = value;
        else
                cli->keys = true;
        return 0;
}

static bool is_local(const char *address)
{
        static const char *const beginnings[] = { "127.", "[::1]:", "unix:" };
        for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
                if (strncmp(address, beginnings[i], strlen(beginnings[i])) == 0)
                        return true;
        return false;
}

/* ---- the daemon ---- */

static pid_t start_daemon(const struct cli_settings *from, const struct serve_cli *cli, bool keyless,
        struct arena *arena, struct csn_error *err)
{
        const char *argv[2 * ARRAY_LEN(from->flags) + 10] = { "caissond" };
        size_t n = 1;
        if (from->file) {
                argv[n++] = "--config";
                argv[n++] = from->file;
        }
        for (size_t i = 0; i < from->flags_n; i++) {
                argv[n++] = "--set";
                argv[n++] = from->flags[i];
        }
        argv[n++] = "--set";
        argv[n++] = arena_text(arena, "engine.http=%s", cli->address);
        argv[n++] = "--set";
        argv[n++] = keyless ? "engine.http_keyless=true" : "engine.http_keyless=false";
        pid_t pid = fork();
        if (pid < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "fork");
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGTERM);
                execv(backend_daemon(), (char *const *)(uintptr_t)argv);
                fprintf(stderr, "caisson: %s: %s\n", backend_daemon(), strerrordesc_np(errno));
                _exit(125);
        }
        return pid;
}

static int connect_unix(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? take_fd(&fd) : -1;
}

/* A descriptor, or -1. */
static int connect_to(const char *address)
{
        char host[100];
        const char *colon = strrchr(address, ':');
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
        struct addrinfo *found = NULL;
        if (strncmp(address, "unix:", 5) == 0)
                return connect_unix(address + 5);
        snprintf(host, sizeof host, "%.*s", colon ? (int)(colon - address) : 0, address);
        char *name = host[0] == '[' ? host + 1 : host;
        name[strcspn(name, "]")] = 0;
        if (!colon || getaddrinfo(name, colon + 1, &hints, &found) != 0 || !found)
                return -1;
        auto_fd fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool good = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0;
        freeaddrinfo(found);
        return good ? take_fd(&fd) : -1;
}

bool cli_is_answered(const char *address)
{
        auto_fd fd = connect_to(address);
        return fd >= 0;
}

/* The daemon would report only a failed bind; the command line names the possible cause and the remedy. */
static int check_free(const char *address, struct csn_error *err)
{
        auto_fd fd = connect_to(address);
        return fd < 0
                ? 0
                : err_set(err, CSN_E_SYSTEM, 0,
                          "%s is in use: a daemon, or another program, listens there already; end it, or give another "
                          "address, such as --listen 127.0.0.1:8081",
                          address);
}

/* Until the daemon answers or has ended. */
static bool wait_ready(pid_t pid, const char *address)
{
        for (int ms = 0; ms < READY_MS; ms += LOOK_MS) {
                siginfo_t info = { 0 };
                auto_fd fd = connect_to(address);
                if (fd >= 0)
                        return true;
                if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
                        return false;
                poll(NULL, 0, LOOK_MS);
        }
        return false;
}

/* ---- words ---- */

/* Whether the daemon shows its page at the address; a browser opens no Unix socket. */
static bool shows_page(const char *address, const struct settings *settings)
{
        int mode = settings->http.web;
        return HAS_PAGE && strncmp(address, "unix:", 5) != 0 &&
                (mode == web_modes_ON || (mode == web_modes_AUTO && is_local(address)));
}

static void greet(const char *address, bool keyless, const struct settings *settings)
{
        const char *sock = settings->engine.socket;
        bool local = strncmp(address, "unix:", 5) == 0;
        const char *curl = local ? "curl -s --unix-socket " : "curl -s ", *where = local ? address + 5 : "",
                   *url = local ? "http://localhost" : "http://";
        printf("Caisson listens at %s%s; %s.\n\n", local ? "" : url, address,
                keyless ? "this host needs no key" : "a key is needed: caisson keys create");
        if (shows_page(address, settings))
                printf("  page   %s%s/ui/\n", url, address);
        printf("  docs   %s%s/docs\n", url, local ? "" : address);
        printf("  try    %s%s%s%s%s/v1/runs%s -d '{\"language\": \"python\", \"code\": \"print(6 * 7)\"}'\n", curl,
                where, local ? " " : "", url, local ? "" : address, keyless ? "" : " -H 'Authorization: Bearer KEY'");
        printf("  watch  %s%s%scaisson top\n  end    Ctrl-C\n", sock && sock[0] ? "CAISSON_ENGINE_SOCKET=" : "",
                sock && sock[0] ? sock : "", sock && sock[0] ? " " : "");
        fflush(stdout);
}

/* The daemon serves on a host unable to run programs, too; then /readyz has the reason. */
static void warn_unready(const char *address)
{
        static const char request[] = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        const struct timeval patience = { .tv_sec = READY_MS / 1000 };
        char text[8192];
        size_t len = 0;
        ssize_t n = 0;
        auto_fd fd = connect_to(address);
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
                io_write_all(fd, request, strlen(request)) < 0)
                return;
        while (len + 1 < sizeof text && (n = read(fd, text + len, sizeof text - 1 - len)) > 0)
                len += (size_t)n;
        text[len] = 0;
        const char *body = strstr(text, "\r\n\r\n");
        if (strncmp(text, "HTTP/1.1 503", 12) != 0 || !body)
                return;
        json_t *problem = json_loads(body + 4, 0, NULL);
        const char *detail = json_string_value(json_object_get(problem, "detail"));
        fprintf(stderr, "caisson: warning: no program can be run here now: %s (see caisson doctor)\n",
                detail ? detail : "GET /readyz is answered with 503");
        json_decref(problem);
}

static pid_t daemon_pid;
static bool had_terminal;

/* A closed terminal cannot be opened any more. */
static bool has_terminal(void)
{
        int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

/*
 * The daemon gets each signal: SIGHUP reads the settings again, but a SIGHUP because the terminal was closed ends the
 * daemon.
 */
static void pass_on(int number)
{
        int saved = errno;
        kill(daemon_pid, number == SIGHUP && had_terminal && !has_terminal() ? SIGTERM : number);
        errno = saved;
}

static void watch_signals(void)
{
        const struct sigaction action = { .sa_handler = pass_on, .sa_flags = SA_RESTART };
        struct sigaction before;
        had_terminal = has_terminal();
        sigaction(SIGTERM, &action, NULL);
        if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)   /* nohup(1) ignores SIGHUP */
                sigaction(SIGHUP, &action, NULL);
        signal(SIGINT, SIG_IGN);   /* the terminal tells the daemon as well */
}

static int serve(int argc, char **argv, const struct settings *settings, const struct cli_settings *from)
{
        struct csn_error err;
        struct arena arena = { 0 };
        struct serve_cli cli = { .address = settings->engine.http[0] ? settings->engine.http : CLI_SERVE_ADDRESS };
        if (cli_parse(cli_serve_options, argc, argv, take_option, &cli, &err) < 0)
                return cli_fail(&err);
        if (optind < argc)
                return cli_unknown_argument("serve", cli_serve_options, argv[optind]);
        if (check_free(cli.address, &err) < 0)
                return cli_fail(&err);
        bool keyless = !cli.keys && is_local(cli.address);
        daemon_pid = start_daemon(from, &cli, keyless, &arena, &err);
        if (daemon_pid < 0)
                return cli_fail(&err);
        watch_signals();
        if (wait_ready(daemon_pid, cli.address)) {
                greet(cli.address, keyless, settings);
                warn_unready(cli.address);
        }
        int status = 0;
        while (waitpid(daemon_pid, &status, 0) < 0 && errno == EINTR)
                ;
        arena_done(&arena);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int cli_serve(int argc, char **argv)
{
        struct cli_settings from;
        struct settings settings;
        argc = cli_take_settings(argc, argv, &from);
        int status = argc < 0 ? 64 : cli_load_settings(&from, &settings);
        if (status == 0)
                status = serve(argc, argv, &settings, &from);
        if (argc >= 0)
                settings_done(&settings);
        return status;
}
