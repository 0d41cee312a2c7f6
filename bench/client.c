/* The timing loops of bench/run, in C so that the clock reads as little of the client as possible.
 *
 *     bench-client run CGROUP_PROCS COUNT THINK_US EXPECTED COMMAND [ARGUMENT...]
 *     bench-client ask SOCKET CLIENTS COUNT MILLISECONDS THINK_US EXPECTED   (the request on standard input)
 *
 * "run" starts a command COUNT times, and prints for each "nanoseconds cpu_us peak_rss_kib".  It moves itself into a
 * cgroup first, by its file cgroup.procs (or /dev/null for none), so that somebody else can count what all of it used.
 * "ask" sends a request over CLIENTS connections, each waiting for its answer before it asks again, until COUNT were
 * sent or MILLISECONDS have passed (0: no such bound), and prints the nanoseconds of each.
 * The last line of both is "elapsed NANOSECONDS OWN_CPU_NANOSECONDS".  An answer that is not what was expected ends the
 * program with 1.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
        FRAME_REQUEST = 1,
        FRAME_OUTPUT = 17,
        FRAME_RECORD = 18,
        HEADER_BYTES = 12,
        FRAME_MAX = 256 * 1024,
        CLIENTS_MAX = 256,
        EVENTS_MAX = 64,
        SAMPLES_MAX = 1000 * 1000,
        SILENCE_MS = 60 * 1000, /* a daemon that says nothing for so long has failed */
};

struct sample {
        int64_t ns, cpu_us, peak_kib;
};

static struct sample samples[SAMPLES_MAX];
static int n_samples;

__attribute__((noreturn)) static void die(const char *what, const char *text, size_t len)
{
        fprintf(stderr, "bench-client: %s: %.*s\n", what, (int)len, text);
        exit(1);
}

__attribute__((noreturn)) static void die_errno(const char *what)
{
        const char *text = strerror(errno);
        die(what, text, strlen(text));
}

static int64_t read_clock(clockid_t clock)
{
        struct timespec t;
        clock_gettime(clock, &t);
        return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t now_ns(void)
{
        return read_clock(CLOCK_MONOTONIC);
}

/* Somewhere between half and one and a half of it, so that we do not beat in time with anything. */
static void think(long think_us)
{
        if (think_us == 0)
                return;
        long us = think_us / 2 + random() % (think_us + 1);
        nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

static void keep(struct sample sample)
{
        if (n_samples < SAMPLES_MAX)
                samples[n_samples++] = sample;
}

static long number(const char *text)
{
        char *end;
        errno = 0;
        long n = strtol(text, &end, 10);
        if (errno != 0 || end == text || *end != '\0' || n < 0)
                die("not a number", text, strlen(text));
        return n;
}

/* ---- run: a process for each ---- */

static size_t read_all(int fd, char *to, size_t max)
{
        size_t have = 0;
        for (;;) {
                ssize_t n = read(fd, to + have, max - have);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        die_errno("read");
                if (n == 0)
                        return have;
                have += (size_t)n;
                if (have == max)
                        die("too much output", "", 0);
        }
}

static struct sample run_once(char **command, const char *expected)
{
        static char output[FRAME_MAX];
        posix_spawn_file_actions_t actions;
        int out[2];
        int64_t start = now_ns();
        if (pipe2(out, O_CLOEXEC) < 0)
                die_errno("pipe");
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
        pid_t pid;
        errno = posix_spawnp(&pid, command[0], &actions, NULL, command, environ);
        if (errno != 0)
                die_errno(command[0]);
        close(out[1]);
        size_t len = read_all(out[0], output, sizeof output);
        int status;
        struct rusage used;
        if (wait4(pid, &status, 0, &used) < 0)
                die_errno("wait4");
        int64_t ns = now_ns() - start;
        close(out[0]);
        posix_spawn_file_actions_destroy(&actions);
        if (status != 0 || len != strlen(expected) || memcmp(output, expected, len) != 0)
                die("not the expected output", output, len);
        int64_t cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000LL + used.ru_utime.tv_usec +
                used.ru_stime.tv_usec;
        return (struct sample){ ns, cpu_us, used.ru_maxrss };
}

static void join_cgroup(const char *procs)
{
        int fd = open(procs, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1)
                die_errno(procs);
        close(fd);
}

static void run(char **argv)
{
        long count = number(argv[0]), think_us = number(argv[1]);
        for (long i = 0; i < count; i++) {
                think(think_us);
                keep(run_once(argv + 3, argv[2]));
        }
}

/* ---- ask: requests to the daemon ---- */

struct client {
        int fd;
        int64_t sent_ns;
        uint32_t id;
        size_t have;
        char in[FRAME_MAX];
};

struct load {
        struct client *clients;
        int epoll_fd, n_clients, n_waiting;
        long count, think_us;
        int64_t deadline_ns;
        const char *expected;
        char request[HEADER_BYTES + FRAME_MAX];
        size_t request_len;
};

static void put_le32(char *to, uint32_t n)
{
        n = htole32(n);
        memcpy(to, &n, sizeof n);
}

static uint32_t get_le32(const char *from)
{
        uint32_t n;
        memcpy(&n, from, sizeof n);
        return le32toh(n);
}

static int open_socket(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        if (strlen(path) >= sizeof address.sun_path)
                die("the path is too long", path, strlen(path));
        memcpy(address.sun_path, path, strlen(path) + 1);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
                die_errno(path);
        return fd;
}

static void send_request(struct load *load, struct client *client)
{
        if (load->count == 0 || (load->deadline_ns != 0 && now_ns() >= load->deadline_ns))
                return;
        load->count--;
        load->n_waiting++;
        think(load->think_us);
        put_le32(load->request + 4, ++client->id);
        client->sent_ns = now_ns();
        ssize_t n = send(client->fd, load->request, load->request_len, MSG_NOSIGNAL);
        if (n < 0 || (size_t)n != load->request_len)
                die_errno("send");
}

static int has(const char *text, size_t len, const char *part)
{
        return memmem(text, len, part, strlen(part)) != NULL;
}

static void take_frame(struct load *load, struct client *client, int type, const char *payload, size_t len)
{
        if (type == FRAME_OUTPUT)
                return;
        if (type != FRAME_RECORD || get_le32(client->in + 4) != client->id)
                die("not a record of ours", payload, len);
        if (!has(payload, len, "\"status\":\"completed\"") || !has(payload, len, load->expected))
                die("not the expected record", payload, len);
        keep((struct sample){ .ns = now_ns() - client->sent_ns });
        load->n_waiting--;
        send_request(load, client);
}

static void take_bytes(struct load *load, struct client *client)
{
        ssize_t n = recv(client->fd, client->in + client->have, sizeof client->in - client->have, 0);
        if (n <= 0)
                die("the daemon has closed the connection", "", 0);
        client->have += (size_t)n;
        while (client->have >= HEADER_BYTES) {
                size_t len = get_le32(client->in), whole = HEADER_BYTES + len;
                if (whole > sizeof client->in)
                        die("a frame is too long", "", 0);
                if (client->have < whole)
                        return;
                take_frame(load, client, (unsigned char)client->in[8], client->in + HEADER_BYTES, len);
                client->have -= whole;
                memmove(client->in, client->in + whole, client->have);
        }
}

static void load_init(struct load *load, char **argv)
{
        load->n_clients = (int)number(argv[1]);
        load->count = number(argv[2]);
        load->think_us = number(argv[4]);
        load->expected = argv[5];
        if (load->n_clients < 1 || load->n_clients > CLIENTS_MAX)
                die("so many clients cannot be", argv[1], strlen(argv[1]));
        load->clients = calloc((size_t)load->n_clients, sizeof *load->clients);
        if (load->clients == NULL)
                die_errno("calloc");
        size_t len = read_all(STDIN_FILENO, load->request + HEADER_BYTES, FRAME_MAX);
        put_le32(load->request, (uint32_t)len);
        load->request[8] = FRAME_REQUEST;
        load->request_len = HEADER_BYTES + len;
        load->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        for (int i = 0; i < load->n_clients; i++) {
                struct client *client = &load->clients[i];
                struct epoll_event event = { .events = EPOLLIN, .data.ptr = client };
                client->fd = open_socket(argv[0]);
                if (epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, client->fd, &event) < 0)
                        die_errno("epoll_ctl");
        }
}

static void ask(char **argv)
{
        static struct load load;
        load_init(&load, argv);
        long ms = number(argv[3]);
        if (ms > 0)
                load.deadline_ns = now_ns() + ms * 1000000LL;
        for (int i = 0; i < load.n_clients; i++)
                send_request(&load, &load.clients[i]);
        while (load.n_waiting > 0) {
                struct epoll_event events[EVENTS_MAX];
                int n = epoll_wait(load.epoll_fd, events, EVENTS_MAX, SILENCE_MS);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        die("no answer", "", 0);
                for (int i = 0; i < n; i++)
                        take_bytes(&load, events[i].data.ptr);
        }
}

int main(int argc, char **argv)
{
        int with_processes = argc >= 7 && strcmp(argv[1], "run") == 0;
        if (!with_processes && !(argc == 8 && strcmp(argv[1], "ask") == 0))
                die("usage", "see bench/client.c", 18);
        srandom((unsigned)getpid());
        if (with_processes)
                join_cgroup(argv[2]);
        int64_t start = now_ns(), cpu_start = read_clock(CLOCK_PROCESS_CPUTIME_ID);
        if (with_processes)
                run(argv + 3);
        else
                ask(argv + 2);
        int64_t elapsed = now_ns() - start, cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
        for (int i = 0; i < n_samples; i++)
                if (with_processes)
                        printf("%ld %ld %ld\n", samples[i].ns, samples[i].cpu_us, samples[i].peak_kib);
                else
                        printf("%ld\n", samples[i].ns);
        printf("elapsed %ld %ld\n", elapsed, cpu);
        return 0;
}
