/*
 * The proxy's connections, with a server, a name server and a program on loopback.
 *
 * There is no global address here, so these tests judge addresses themselves: 127.0.0.1 and 127.0.0.2 are
 * "global", all else is what it is.
 */
#include "egress/egress.h"

#include "tests/unit/tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define PATIENCE_MS 20000

static struct loop *loop;
static struct egress *egress;
static unsigned proxy_port, server_port;
static int server_fd = -1, dns_fd = -1;
static char rule_text[64], dns_text[64], last_host[300], last_refusal[EGRESS_TEXT_MAX];
static int news;

static const char *judge(const struct net_address *address)
{
        static const uint8_t good[2][4] = { { 127, 0, 0, 1 }, { 127, 0, 0, 2 } };
        if (address->len == 4 && (memcmp(address->bytes, good[0], 4) == 0 || memcmp(address->bytes, good[1], 4) == 0))
                return NULL;
        return egress_class(address);
}

static void on_connection(void *owner, const char *host, unsigned port, const char *refusal)
{
        (void)owner;
        news++;
        snprintf(last_host, sizeof last_host, "%s:%u", host, port);
        snprintf(last_refusal, sizeof last_refusal, "%s", refusal ? refusal : "");
}

static int bound(int type, unsigned *ret_port)
{
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t len = sizeof address;
        int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || (type == SOCK_STREAM && listen(fd, 64) < 0) ||
            getsockname(fd, (struct sockaddr *)&address, &len) < 0)
                abort();
        *ret_port = ntohs(address.sin_port);
        return fd;
}

static const struct egress_events events = { on_connection };

/* A proxy whose program may reach server_port of every name, and addresses; its name server is dns_fd. */
static void set_up(struct egress_rules rules)
{
        struct csn_error err;
        unsigned dns_port;
        char *names[] = { rule_text };
        CHECK(loop_new(&loop, &err) == 0);
        server_fd = bound(SOCK_STREAM, &server_port);
        dns_fd = bound(SOCK_DGRAM, &dns_port);
        snprintf(rule_text, sizeof rule_text, "*.egress.test:%u", server_port);
        snprintf(dns_text, sizeof dns_text, "127.0.0.1:%u", dns_port);
        rules.hosts = names;
        rules.hosts_n = 1;
        rules.dns = dns_text;
        rules.class_ = judge;
        news = 0;
        last_host[0] = last_refusal[0] = 0;
        int listener = bound(SOCK_STREAM, &proxy_port);
        int rc = egress_open(loop, listener, &rules, &events, NULL, &egress, &err);
        if (rc < 0)
                printf("# %s\n", err.text);
        CHECK(rc == 0);
}

static void tear_down(void)
{
        egress_close(egress);
        egress = NULL;
        loop_free(loop);
        fd_close(&server_fd);
        fd_close(&dns_fd);
}

static int to_proxy(void)
{
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)proxy_port),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
                fd_close(&fd);
        else
                fcntl(fd, F_SETFL, O_NONBLOCK);
        return fd;
}

/*
 * The name server.  The first label says what comes; "six" is fd00::1, "none" does not exist, and to any other
 * it is silent.
 */
static const struct { const char *label; unsigned n; uint8_t addresses[2][4]; } zone[] = {
        { "good", 1, { { 127, 0, 0, 1 } } },
        { "second", 2, { { 127, 0, 0, 2 }, { 127, 0, 0, 1 } } },
        { "mixed", 2, { { 127, 0, 0, 1 }, { 10, 0, 0, 1 } } },
        { "private", 1, { { 192, 168, 1, 1 } } },
        { "none", 0, { { 0 } } },
        { "six", 0, { { 0 } } },
};

static void answer_names(void)
{
        uint8_t packet[600];
        struct sockaddr_in peer;
        socklen_t peer_len = sizeof peer;
        ssize_t len = recvfrom(dns_fd, packet, 512, 0, (struct sockaddr *)&peer, &peer_len);
        if (len < 17)
                return;
        size_t end = 12;
        while (end + 5 < (size_t)len && packet[end])
                end += packet[end] + 1U;
        bool v4 = packet[end + 2] == 1, v6 = packet[end + 2] == 28;
        size_t at = end + 5;
        unsigned answers = 0;
        for (size_t i = 0; i < ARRAY_LEN(zone); i++) {
                if (packet[12] != strlen(zone[i].label) || memcmp(packet + 13, zone[i].label, packet[12]) != 0)
                        continue;
                bool six = v6 && strcmp(zone[i].label, "six") == 0;
                for (unsigned j = 0; j < (v4 ? zone[i].n : six ? 1 : 0); j++, answers++) {
                        const uint8_t record[] = { 0xc0, 12, 0, six ? 28 : 1, 0, 1, 0, 0, 0, 0, 0, six ? 16 : 4 };
                        static const uint8_t ula[16] = { 0xfd, [15] = 1 };
                        memcpy(packet + at, record, sizeof record);
                        memcpy(packet + at + sizeof record, six ? ula : zone[i].addresses[j], six ? 16 : 4);
                        at += sizeof record + (six ? 16 : 4);
                }
                packet[2] = 0x81;
                packet[3] = strcmp(zone[i].label, "none") == 0 ? 0x83 : 0x80;
                packet[7] = (uint8_t)answers;
                packet[8] = packet[9] = packet[10] = packet[11] = 0;
                sendto(dns_fd, packet, at, 0, (struct sockaddr *)&peer, peer_len);
        }
}

/* For so long, and so many steps as this usually has: on a machine that stands still for a while time alone is none. */
static void spin(uint64_t ms)
{
        struct csn_error err;
        uint64_t steps = 0;
        for (uint64_t end = clock_ms() + ms; clock_ms() < end || steps < ms / 2; steps++) {
                answer_names();
                loop_step(loop, 2, &err);
        }
}

/* Until so many bytes came, or the end; returns how many. */
static size_t hear(int fd, char *text, size_t size)
{
        size_t len = 0;
        struct csn_error err;
        for (uint64_t end = clock_ms() + PATIENCE_MS; clock_ms() < end && len < size - 1;) {
                ssize_t n = recv(fd, text + len, size - 1 - len, 0);
                if (n > 0)
                        len += (size_t)n;
                else if (n == 0 || errno != EAGAIN)
                        break;
                answer_names();
                loop_step(loop, 2, &err);
        }
        text[len] = 0;
        return len;
}

static void say(int fd, const char *text)
{
        CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

/* The server's end of the next connection, or -1. */
static int served(void)
{
        struct csn_error err;
        for (uint64_t end = clock_ms() + PATIENCE_MS; clock_ms() < end;) {
                int fd = accept4(server_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd >= 0)
                        return fd;
                answer_names();
                loop_step(loop, 2, &err);
        }
        return -1;
}

/* The status of the answer to this request, its text in last_answer. */
static char last_answer[4096];

static int ask(const char *request)
{
        auto_fd fd = to_proxy();
        say(fd, request);
        hear(fd, last_answer, sizeof last_answer);
        int status = 0;
        return sscanf(last_answer, "HTTP/1.1 %d ", &status) == 1 ? status : -1;
}

static int ask_for(const char *label)
{
        char request[200];
        snprintf(request, sizeof request, "CONNECT %s.egress.test:%u HTTP/1.1\r\n\r\n", label, server_port);
        return ask(request);
}

/* Both ends of a tunnel to a name. */
static void tunnel(const char *label, int *ret_client, int *ret_server)
{
        char request[200], text[200];
        static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
        *ret_client = to_proxy();
        snprintf(request, sizeof request, "CONNECT %s.egress.test:%u HTTP/1.1\r\n\r\n", label, server_port);
        say(*ret_client, request);
        *ret_server = served();
        CHECK(*ret_server >= 0);
        CHECK(hear(*ret_client, text, sizeof established) == sizeof established - 1 && strcmp(text, established) == 0);
}

static void a_tunnel_carries_bytes_both_ways_and_half_an_end(void)
{
        set_up((struct egress_rules){ 0 });
        auto_fd client = -1;
        auto_fd server = -1;
        char text[100];
        tunnel("good", &client, &server);
        CHECK(news == 1 && strstr(last_host, "good.egress.test:") == last_host && !last_refusal[0]);
        say(client, "ping");
        CHECK(hear(server, text, 5) == 4 && strcmp(text, "ping") == 0);
        shutdown(client, SHUT_WR);
        CHECK(hear(server, text, sizeof text) == 0);        /* the end arrives, */
        say(server, "pong");                                /* and the other way still works */
        fd_close(&server);
        CHECK(hear(client, text, sizeof text) == 4 && strcmp(text, "pong") == 0);
        uint64_t connections, refused, in, out;
        egress_usage(egress, &connections, &refused, &in, &out);
        CHECK(connections == 1 && refused == 0 && in == 4 && out == 4);
        tear_down();
}

static void what_came_with_the_head_is_not_lost(void)
{
        set_up((struct egress_rules){ 0 });
        auto_fd client = to_proxy();
        char request[200], text[200];
        snprintf(request, sizeof request, "CONNECT good.egress.test:%u HTTP/1.1\r\n\r\nhello", server_port);
        for (const char *c = request; *c; c++) {
                CHECK(send(client, c, 1, MSG_NOSIGNAL) == 1);
                spin(1);
        }
        auto_fd server = served();
        CHECK(hear(server, text, 6) == 5 && strcmp(text, "hello") == 0);
        tear_down();
}

static void a_plain_request_is_rewritten_and_is_the_only_one(void)
{
        set_up((struct egress_rules){ 0 });
        auto_fd client = to_proxy();
        char request[400], want[300], text[1000];
        snprintf(request, sizeof request,
                "POST http://good.egress.test:%u/p HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 4\r\n"
                "Proxy-Connection: keep-alive\r\n\r\nbodyGET http://evil.test/ HTTP/1.1\r\n\r\n",
                server_port);
        snprintf(want, sizeof want,
                "POST /p HTTP/1.1\r\nHost: good.egress.test:%u\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody",
                server_port);
        say(client, request);
        auto_fd server = served();
        hear(server, text, strlen(want) + 1);
        CHECK(strcmp(text, want) == 0);
        spin(50);
        CHECK(recv(server, text, sizeof text, 0) < 0 && errno == EAGAIN);   /* nothing more, and no end */
        say(server, "HTTP/1.1 200 OK\r\n\r\nfine");
        fd_close(&server);
        CHECK(hear(client, text, sizeof text) == 23 && strstr(text, "fine"));
        tear_down();
}

static void a_plain_request_in_chunks_ends_with_the_last_one(void)
{
        set_up((struct egress_rules){ 0 });
        auto_fd client = to_proxy();
        char request[400], text[1000];
        snprintf(request, sizeof request,
                "PUT http://good.egress.test:%u/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", server_port);
        say(client, request);
        auto_fd server = served();
        spin(20);
        say(client, "c\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n");
        spin(50);
        hear(server, text,
                (size_t)snprintf(NULL, 0,
                        "PUT / HTTP/1.1\r\nHost: good.egress.test:%u\r\nTransfer-Encoding: chunked\r\n"
                        "Connection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                        server_port) +
                        1);
        CHECK(strlen(text) > 13 && strcmp(text + strlen(text) - 13, "3\r\nabc\r\n0\r\n\r\n") == 0);
        CHECK(recv(server, text, sizeof text, 0) < 0 && errno == EAGAIN);
        tear_down();
}

static void refusals_say_why_in_the_status_line_and_the_body(void)
{
        set_up((struct egress_rules){ 0 });
        CHECK(ask("CONNECT example.org:443 HTTP/1.1\r\n\r\n") == 403);
        CHECK(strstr(last_answer, "HTTP/1.1 403 Forbidden (example.org is not among the hosts named in allow)\r\n") ==
                last_answer);
        CHECK(strstr(last_answer, "\r\n\r\nexample.org is not among the hosts named in allow\n"));
        CHECK(news == 1 && strcmp(last_host, "example.org:443") == 0 && strstr(last_refusal, "not among"));
        CHECK(ask("CONNECT 127.0.0.1:80 HTTP/1.1\r\n\r\n") == 403);
        CHECK(ask("CONNECT good.egress.test:1 HTTP/1.1\r\n\r\n") == 403 && strstr(last_answer, "port 1 "));
        CHECK(ask_for("private") == 403 && strstr(last_answer, "private 192.168.0.0/16"));
        CHECK(ask_for("mixed") == 403 && strstr(last_answer, "private 10.0.0.0/8"));
        CHECK(ask_for("six") == 403 && strstr(last_answer, "private fc00::/7"));
        CHECK(ask_for("none") == 502 && strstr(last_answer, "there is no such name"));
        news = 0;
        CHECK(ask("GET / HTTP/1.1\r\n\r\n") == 400 && news == 0);
        CHECK(ask("GET http://\x1b[31m/ HTTP/1.1\r\n\r\n") == 400 && !strchr(last_answer, 0x1b));
        CHECK(accept4(server_fd, NULL, NULL, SOCK_CLOEXEC) < 0 && errno == EAGAIN);   /* nothing ever got there */
        uint64_t connections, refused, in, out;
        egress_usage(egress, &connections, &refused, &in, &out);
        CHECK(connections == 9 && refused == 9 && in == 0 && out == 0);
        tear_down();
}

static void public_mode_still_refuses_what_is_not_public(void)
{
        set_up((struct egress_rules){ .public_ = true });
        static const char *const refused[] = { "10.0.0.1", "169.254.169.254", "2852039166", "0xa9fea9fe", "[::1]",
                "[::ffff:10.0.0.1]", "[fd00::1]", "0", "127.0.0.3", "017700000003" };
        for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
                char request[100];
                snprintf(request, sizeof request, "GET http://%s/ HTTP/1.1\r\n\r\n", refused[i]);
                CHECK(ask(request) == 403 && strstr(last_answer, "is no public address"));
        }
        CHECK(ask_for("private") == 403 && ask_for("mixed") == 403);
        CHECK(ask("CONNECT good.egress.test:22 HTTP/1.1\r\n\r\n") == 403);
        CHECK(ask("CONNECT localhost:443 HTTP/1.1\r\n\r\n") != 200);
        tear_down();
}

static void the_next_address_is_tried_when_one_refuses(void)
{
        set_up((struct egress_rules){ 0 });
        auto_fd client = -1;
        auto_fd server = -1;
        tunnel("second", &client, &server);          /* nothing listens on 127.0.0.2 */
        fd_close(&server_fd);
        CHECK(ask_for("good") == 502 && strstr(last_answer, "Connection refused"));
        tear_down();
}

static void every_wait_has_an_end(void)
{
        set_up((struct egress_rules){ .head_ms = 500, .connect_ms = 800, .idle_ms = 800 });
        uint64_t start = clock_ms();
        CHECK(ask("GET http://good") == 408 && clock_ms() - start >= 500);
        start = clock_ms();
        /* c-ares waits shorter for a server that answered fast before (since 1.34), and never less than 250 ms. */
        CHECK(ask_for("silent") == 504 && clock_ms() - start >= 240);
        auto_fd client = -1;
        auto_fd server = -1;
        char text[100];
        tunnel("good", &client, &server);
        for (int i = 0; i < 10; i++) {               /* longer than idle_ms, and never idle */
                spin(100);
                say(client, "x");
        }
        CHECK(hear(server, text, 11) == 10);
        start = clock_ms();
        CHECK(hear(client, text, sizeof text) == 0 && clock_ms() - start >= 400 && clock_ms() - start < PATIENCE_MS);
        tear_down();
}

static void a_client_that_goes_while_its_name_is_resolved_is_no_trouble(void)
{
        set_up((struct egress_rules){ .connect_ms = 1000 });
        for (int i = 0; i < 20; i++) {
                auto_fd client = to_proxy();
                char request[100];
                snprintf(request, sizeof request, "CONNECT silent.egress.test:%u HTTP/1.1\r\n\r\n", server_port);
                say(client, request);
                spin(5);
        }
        auto_fd other = -1;
        auto_fd server = -1;
        tunnel("good", &other, &server);
        spin(1200);
        tear_down();
        set_up((struct egress_rules){ 0 });          /* and the end comes with questions open */
        auto_fd client = to_proxy();
        char request[100];
        snprintf(request, sizeof request, "CONNECT silent.egress.test:%u HTTP/1.1\r\n\r\n", server_port);
        say(client, request);
        spin(50);
        tear_down();
}

static void too_many_connections_are_told_so(void)
{
        set_up((struct egress_rules){ .connections_max = 2, .requests_max = 12 });
        auto_fd a = -1;
        auto_fd b = -1;
        auto_fd c = -1;
        auto_fd d = -1;
        tunnel("good", &a, &b);
        tunnel("good", &c, &d);
        CHECK(ask_for("good") == 503 && strstr(last_answer, "2 connections open"));
        fd_close(&a);
        fd_close(&b);
        spin(100);
        tunnel("good", &a, &b);                      /* there is room again */
        for (int i = 0; i < 8; i++)
                CHECK(ask_for("good") == 503);
        auto_fd late = to_proxy();                   /* twelve were all: nobody listens any more */
        char text[10];
        CHECK(late < 0 || hear(late, text, sizeof text) == 0);
        say(a, "still");
        CHECK(hear(b, text, 6) == 5);
        tear_down();
}

static void a_flood_of_connections_waits_in_the_backlog(void)
{
        set_up((struct egress_rules){ .connections_max = 1 });
        int fds[40];
        for (size_t i = 0; i < ARRAY_LEN(fds); i++)
                fds[i] = to_proxy();
        spin(100);
        uint64_t connections, refused, in, out;
        egress_usage(egress, &connections, &refused, &in, &out);
        CHECK(connections == 17 && refused == 16);
        for (size_t i = 0; i < ARRAY_LEN(fds); i++)
                fd_close(&fds[i]);
        spin(100);
        egress_usage(egress, &connections, &refused, &in, &out);
        CHECK(connections == 40);
        CHECK(ask_for("private") == 403);
        tear_down();
}

static void the_bytes_of_a_run_are_counted_and_end(void)
{
        set_up((struct egress_rules){ .bytes_max = 10 });
        auto_fd client = -1;
        auto_fd server = -1;
        char text[100];
        tunnel("good", &client, &server);
        say(client, "1234");
        CHECK(hear(server, text, 5) == 4);
        say(server, "abcdefghijk");
        CHECK(hear(client, text, sizeof text) == 6);
        CHECK(ask_for("good") == 403 && strstr(last_answer, "used up its bytes"));
        uint64_t connections, refused, in, out;
        egress_usage(egress, &connections, &refused, &in, &out);
        CHECK(in == 6 && out == 4);
        tear_down();
}

static uint64_t cpu_ms(void)
{
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
               (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/* How often the loop is woken in this time: one that is woken at once each time spins. */
static unsigned wakes(uint64_t ms)
{
        struct csn_error err;
        unsigned n = 0;
        for (uint64_t end = clock_ms() + ms; clock_ms() < end; n++)
                loop_step(loop, 50, &err);
        return n;
}

static void a_reader_that_does_not_read_stops_the_writer_and_costs_nothing(void)
{
        set_up((struct egress_rules){ 0 });
        auto_fd client = -1;
        auto_fd server = -1;
        static char block[65536], seen[65536];
        tunnel("good", &client, &server);
        size_t sent = 0;
        for (size_t i = 0; i < sizeof block; i++)
                block[i] = (char)(i * 31 + i / 251);
        for (int quiet = 0; quiet < 50; quiet++) {
                ssize_t n = send(server, block + sent % sizeof block, sizeof block - sent % sizeof block, MSG_NOSIGNAL);
                if (n > 0) {
                        sent += (size_t)n;
                        quiet = 0;
                }
                spin(2);
        }
        uint64_t cpu = cpu_ms();
        CHECK(wakes(300) <= 10);
        CHECK(cpu_ms() - cpu < 100);
        uint64_t connections, refused, in, out;
        egress_usage(egress, &connections, &refused, &in, &out);
        CHECK(sent > in);                            /* the rest waits at the server */
        fd_close(&server);
        CHECK(wakes(200) <= 10);
        size_t got = 0, n;
        bool same = true;
        while ((n = hear(client, seen, 8192)) > 0)
                for (size_t i = 0; i < n; i++, got++)
                        same = same && seen[i] == block[got % sizeof block];
        CHECK(got == sent && same);
        tear_down();
}

static void an_end_on_both_sides_in_any_order_leaves_nothing_spinning(void)
{
        for (int order = 0; order < 6; order++) {
                set_up((struct egress_rules){ 0 });
                auto_fd client = -1;
                auto_fd server = -1;
                tunnel("good", &client, &server);
                struct linger reset = { 1, 0 };
                if (order >= 4)
                        setsockopt(order == 4 ? client : server, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
                if (order == 0 || order == 4)
                        fd_close(&client);
                else if (order == 1 || order == 5)
                        fd_close(&server);
                else
                        shutdown(order == 2 ? client : server, SHUT_WR);
                CHECK(wakes(150) <= 12);
                if (order >= 2) {
                        fd_close(&client);
                        fd_close(&server);
                        CHECK(wakes(100) <= 12);
                }
                tear_down();
        }
}

static void a_rule_that_is_none_is_refused_at_the_start(void)
{
        struct csn_error err;
        unsigned port;
        char *names[] = { "10.0.0.1" };
        struct egress_rules rules = { .hosts = names, .hosts_n = 1 };
        CHECK(loop_new(&loop, &err) == 0);
        int fd = bound(SOCK_STREAM, &port);
        CHECK(egress_open(loop, fd, &rules, &events, NULL, &egress, &err) == -CSN_E_INPUT);
        CHECK(fcntl(fd, F_GETFD) < 0);               /* taken all the same */
        fd = bound(SOCK_STREAM, &port);
        rules = (struct egress_rules){ .public_ = true, .dns = "not servers" };
        CHECK(egress_open(loop, fd, &rules, &events, NULL, &egress, &err) == -CSN_E_INPUT);
        egress_close(NULL);
        loop_free(loop);
}

int main(void)
{
        RUN(a_rule_that_is_none_is_refused_at_the_start);
        RUN(a_tunnel_carries_bytes_both_ways_and_half_an_end);
        RUN(what_came_with_the_head_is_not_lost);
        RUN(a_plain_request_is_rewritten_and_is_the_only_one);
        RUN(a_plain_request_in_chunks_ends_with_the_last_one);
        RUN(refusals_say_why_in_the_status_line_and_the_body);
        RUN(public_mode_still_refuses_what_is_not_public);
        RUN(the_next_address_is_tried_when_one_refuses);
        RUN(every_wait_has_an_end);
        RUN(a_client_that_goes_while_its_name_is_resolved_is_no_trouble);
        RUN(too_many_connections_are_told_so);
        RUN(a_flood_of_connections_waits_in_the_backlog);
        RUN(the_bytes_of_a_run_are_counted_and_end);
        RUN(a_reader_that_does_not_read_stops_the_writer_and_costs_nothing);
        RUN(an_end_on_both_sides_in_any_order_leaves_nothing_spinning);
        return tap_done();
}
