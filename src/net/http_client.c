/* Outgoing HTTP requests; see http_client.h. */
#include "net/http_client.h"

#include "config.h"
#include "net/dns.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define LOOKUP_MS 5000

struct fetch_socket {
        struct fetch_socket *next;
        struct fetcher *fetcher;
        struct watch watch;
};

struct fetcher {
        struct loop *loop;
        CURLM *multi;
        struct resolver *resolver;         /* opened when a name has to be resolved first */
        struct timer clock;                /* libcurl's */
        struct fetch_socket *sockets;
        struct fetch *sending;
};

/* ---- libcurl in our loop ---- */

static void unlink_fetch(struct fetch *fetch)
{
        for (struct fetch **at = &fetch->fetcher->sending; *at; at = &(*at)->next)
                if (*at == fetch) {
                        *at = fetch->next;
                        break;
                }
        fetch->sending = false;
}

static void look(struct fetcher *fetcher)
{
        int left;
        for (CURLMsg *message; (message = curl_multi_info_read(fetcher->multi, &left));) {
                CURLcode code = message->data.result;
                struct fetch *fetch = fetcher->sending;
                while (fetch && fetch->easy != message->easy_handle)
                        fetch = fetch->next;
                if (message->msg != CURLMSG_DONE || !fetch)
                        continue;
                long status = 0;
                /* Removal would close a connection made for its own sake; the message is gone either way. */
                if (!fetch->connects || code != CURLE_OK) {
                        curl_multi_remove_handle(fetcher->multi, fetch->easy);
                        unlink_fetch(fetch);
                }
                curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &status);
                fetch->done(fetch, status, code == CURLE_OK ? NULL : curl_easy_strerror(code), code);
        }
}

static void on_clock(struct timer *timer)
{
        struct fetcher *fetcher = timer->owner;
        int running;
        curl_multi_socket_action(fetcher->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        look(fetcher);
}

/* The watch may be gone when libcurl has done its work. */
static void on_ready(struct watch *watch, uint32_t events)
{
        const struct fetch_socket *one = watch->owner;
        struct fetcher *fetcher = one->fetcher;
        int what = (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                   (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
        int running;
        curl_multi_socket_action(fetcher->multi, watch->fd, what, &running);
        look(fetcher);
}

static int on_wanted_time(CURLM *multi, long ms, void *owner)
{
        struct fetcher *fetcher = owner;
        (void)multi;
        if (ms < 0)
                loop_untimer(fetcher->loop, &fetcher->clock);
        else
                loop_timer(fetcher->loop, &fetcher->clock, (uint64_t)ms * 1000);
        return 0;
}

static int on_wanted_socket(CURL *easy, curl_socket_t fd, int what, void *owner, void *own)
{
        struct fetcher *fetcher = owner;
        struct fetch_socket **at = &fetcher->sockets;
        (void)easy, (void)own;
        while (*at && (*at)->watch.fd != fd)
                at = &(*at)->next;
        struct fetch_socket *one = *at;
        if (what == CURL_POLL_REMOVE) {
                if (!one)
                        return 0;
                *at = one->next;
                loop_unwatch(fetcher->loop, &one->watch);
                free(one);
                return 0;
        }
        if (!one) {
                one = mem_alloc(sizeof *one);
                *one = (struct fetch_socket){ .next = fetcher->sockets,
                        .fetcher = fetcher,
                        .watch = { .fd = fd, .ready = on_ready, .owner = one } };
                fetcher->sockets = one;
        }
        /* A socket without a watch never answers: the time-out of libcurl ends the request. */
        loop_watch(fetcher->loop, &one->watch, fd,
                (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0), NULL);
        return 0;
}

/* libcurl would make the socket without O_CLOEXEC. */
static curl_socket_t on_open_socket(void *owner, curlsocktype purpose, struct curl_sockaddr *address)
{
        (void)owner, (void)purpose;
        return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

int fetcher_open(struct loop *loop, struct fetcher **ret, struct csn_error *err)
{
        struct fetcher *fetcher = mem_alloc(sizeof *fetcher);
        *fetcher = (struct fetcher){ .loop = loop, .clock = { .fired = on_clock, .owner = fetcher } };
        if (curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK || !(fetcher->multi = curl_multi_init())) {
                free(fetcher);
                return err_set(err, CSN_E_SYSTEM, 0, "libcurl cannot be used");
        }
        curl_multi_setopt(fetcher->multi, CURLMOPT_SOCKETFUNCTION, on_wanted_socket);
        curl_multi_setopt(fetcher->multi, CURLMOPT_SOCKETDATA, fetcher);
        curl_multi_setopt(fetcher->multi, CURLMOPT_TIMERFUNCTION, on_wanted_time);
        curl_multi_setopt(fetcher->multi, CURLMOPT_TIMERDATA, fetcher);
        *ret = fetcher;
        return 0;
}

void fetcher_close(struct fetcher *fetcher)
{
        if (!fetcher)
                return;
        resolver_close(fetcher->resolver);
        curl_multi_cleanup(fetcher->multi);
        loop_untimer(fetcher->loop, &fetcher->clock);
        while (fetcher->sockets) {
                struct fetch_socket *next = fetcher->sockets->next;
                loop_unwatch(fetcher->loop, &fetcher->sockets->watch);
                free(fetcher->sockets);
                fetcher->sockets = next;
        }
        free(fetcher);
}

/* ---- URLs ---- */

enum url_state { URL_GOOD, URL_WITH_USER, URL_WRONG };

static enum url_state find_host(struct fetch *fetch, const char *text)
{
        CURLU *url = curl_url();
        char *scheme = NULL, *host = NULL, *port = NULL, *user = NULL;
        uint8_t address[16];
        bool good = false, whose = false;
        if (curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK) {
                whose = curl_url_get(url, CURLUPART_USER, &user, 0) == CURLUE_OK;
                good = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                        (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) &&
                        curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK;
        }
        if (good) {
                fetch->host = mem_copy(host, strlen(host));
                fetch->port = (unsigned)strtoul(port, NULL, 10);
                fetch->named = host[0] != '[' && inet_pton(AF_INET, host, address) != 1;
        }
        curl_free(scheme), curl_free(host), curl_free(port), curl_free(user);
        curl_url_cleanup(url);
        return whose ? URL_WITH_USER : good ? URL_GOOD : URL_WRONG;
}

static int refuse_user(const char *key, const char *secret, struct csn_error *err)
{
        return err_set(err, CSN_E_CONFIG, 0, "%s has a user name or a password in it; what is secret belongs into %s",
                key, secret);
}

int fetch_check(const char *url, const char *key, const char *secret, struct csn_error *err)
{
        struct fetch fetch = { 0 };
        enum url_state state = find_host(&fetch, url);
        free(fetch.host);
        if (state == URL_WITH_USER)
                return refuse_user(key, secret, err);
        return state == URL_GOOD
                ? 0
                : err_set(err, CSN_E_CONFIG, 0,
                          "%s has to be http://HOST:PORT or https://HOST:PORT, with a path if you like", key);
}

/* ---- a request ---- */

static void on_late(struct timer *timer)
{
        struct fetch *fetch = timer->owner;
        fetch->done(fetch, 0, fetch->why, fetch->code);
}

static void fail(struct fetch *fetch, const char *why, CURLcode code)
{
        snprintf(fetch->why, sizeof fetch->why, "%s", why);
        fetch->code = code;
        loop_timer(fetch->fetcher->loop, &fetch->late, 0);
}

int fetch_open(struct fetch *fetch, struct fetcher *fetcher, const char *url, const char *key, const char *secret,
        struct csn_error *err)
{
        fetch->fetcher = fetcher;
        fetch->late = (struct timer){ .fired = on_late, .owner = fetch };
        enum url_state state = find_host(fetch, url);
        if (state == URL_WITH_USER)
                return refuse_user(key, secret, err);
        if (state != URL_GOOD)
                return err_set(err, CSN_E_CONFIG, 0,
                        "%s is \"%.200s\"; it has to be http://HOST:PORT or https://HOST:PORT, with a path if you like",
                        key, url);
        fetch->easy = curl_easy_init();
        if (!fetch->easy)
                return err_set(err, CSN_E_SYSTEM, 0, "libcurl cannot be used");
        curl_easy_setopt(fetch->easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(fetch->easy, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(fetch->easy, CURLOPT_PROXY, "");
        curl_easy_setopt(fetch->easy, CURLOPT_URL, url);
        curl_easy_setopt(fetch->easy, CURLOPT_USERAGENT, "caisson/" VERSION);
        curl_easy_setopt(fetch->easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
        return 0;
}

static void send_now(struct fetch *fetch)
{
        curl_easy_setopt(fetch->easy, CURLOPT_RESOLVE, fetch->addresses);
        curl_easy_setopt(fetch->easy, CURLOPT_TIMEOUT_MS, fetch->ms);
        CURLMcode code = curl_multi_add_handle(fetch->fetcher->multi, fetch->easy);
        if (code != CURLM_OK) {
                fail(fetch, curl_multi_strerror(code), CURLE_FAILED_INIT);
                return;
        }
        fetch->sending = true;
        fetch->next = fetch->fetcher->sending;
        fetch->fetcher->sending = fetch;
}

static void on_addresses(void *owner, const struct net_address *addresses, size_t n, const char *problem,
        bool timed_out)
{
        struct fetch *fetch = owner;
        struct buf text;
        (void)timed_out;
        if (problem) {
                fail(fetch, problem, CURLE_COULDNT_RESOLVE_HOST);
                return;
        }
        buf_init(&text, 8 * KIB);
        buf_printf(&text, "%s:%u:", fetch->host, fetch->port);
        for (size_t i = 0; i < n; i++) {
                char address[INET6_ADDRSTRLEN] = "";
                bool v6 = addresses[i].len == 16;
                inet_ntop(v6 ? AF_INET6 : AF_INET, addresses[i].bytes, address, sizeof address);
                buf_printf(&text, "%s%s%s%s", i ? "," : "", v6 ? "[" : "", address, v6 ? "]" : "");
        }
        curl_slist_free_all(fetch->addresses);
        fetch->addresses = curl_slist_append(NULL, text.bytes);
        buf_done(&text);
        send_now(fetch);
}

void fetch_start(struct fetch *fetch, long ms)
{
        struct fetcher *fetcher = fetch->fetcher;
        struct csn_error err;
        fetch->ms = ms;
        if (!fetch->named)
                send_now(fetch);
        else if (!fetcher->resolver && resolver_open(fetcher->loop, NULL, LOOKUP_MS, &fetcher->resolver, &err) < 0)
                fail(fetch, err.text, CURLE_FAILED_INIT);
        else
                resolver_ask(fetcher->resolver, fetch->host, on_addresses, fetch, &fetch->lookup);
}

bool fetch_now(struct fetch *fetch, long ms, long *ret_status)
{
        *ret_status = 0;
        if (fetch->named && !fetch->addresses)
                return false;
        curl_easy_setopt(fetch->easy, CURLOPT_RESOLVE, fetch->addresses);
        curl_easy_setopt(fetch->easy, CURLOPT_TIMEOUT_MS, ms);
        CURLcode code = curl_easy_perform(fetch->easy);
        curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, ret_status);
        return code == CURLE_OK;
}

void fetch_stop(struct fetch *fetch)
{
        loop_untimer(fetch->fetcher->loop, &fetch->late);
        lookup_forget(&fetch->lookup);
        if (!fetch->sending)
                return;
        curl_multi_remove_handle(fetch->fetcher->multi, fetch->easy);
        unlink_fetch(fetch);
}

void fetch_close(struct fetch *fetch)
{
        if (fetch->easy)
                fetch_stop(fetch);
        curl_easy_cleanup(fetch->easy);
        curl_slist_free_all(fetch->addresses);
        free(fetch->host);
        *fetch = (struct fetch){ 0 };
}
