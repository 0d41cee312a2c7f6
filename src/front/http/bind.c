/* Addresses for listeners of http.h, as written by people. */
#include "front/http/http.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

static int bad_address(const char *address, struct csn_error *err)
{
        return err_set(err, CSN_E_CONFIG, 0,
                "engine.http is \"%.120s\"; it must be an address such as 127.0.0.1:8080, [::1]:8080 or unix:/path",
                address);
}

static int parse_address(const char *address, struct sockaddr_storage *ret, socklen_t *ret_len, struct csn_error *err)
{
        struct sockaddr_un *local = (struct sockaddr_un *)ret;
        struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
        const char *colon = strrchr(address, ':');
        char host[64], *end;
        *ret = (struct sockaddr_storage){ 0 };
        if (strncmp(address, "unix:", 5) == 0) {
                int n = snprintf(local->sun_path, sizeof local->sun_path, "%s", address + 5);
                if (n <= 0 || (size_t)n >= sizeof local->sun_path)
                        return bad_address(address, err);
                local->sun_family = AF_UNIX;
                *ret_len = sizeof *local;
                return 0;
        }
        unsigned long port = colon && isdigit((unsigned char)colon[1]) ? strtoul(colon + 1, &end, 10) : 65536;
        bool bracket = colon && address[0] == '[' && colon > address + 1 && colon[-1] == ']';
        size_t len = colon ? (size_t)(colon - address) - (bracket ? 2U : 0U) : 0;
        if (port > 65535 || *end || len == 0 || len >= sizeof host)
                return bad_address(address, err);
        memcpy(host, address + bracket, len);
        host[len] = 0;
        if (bracket && inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
                v6->sin6_family = AF_INET6;
                v6->sin6_port = htons((uint16_t)port);
                *ret_len = sizeof *v6;
                return 0;
        }
        if (bracket || inet_pton(AF_INET, host, &v4->sin_addr) != 1)
                return bad_address(address, err);
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        *ret_len = sizeof *v4;
        return 0;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        if (address->ss_family == AF_INET)
                return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
        return address->ss_family == AF_UNIX ||
                (address->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr));
}

bool http_note_address(int listener, char *ret, size_t size)
{
        struct sockaddr_storage address = { 0 };
        socklen_t len = sizeof address;
        char host[INET6_ADDRSTRLEN];
        if (getsockname(listener, (struct sockaddr *)&address, &len) < 0)
                return false;
        const struct sockaddr_un *local = (const struct sockaddr_un *)&address;
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address;
        if (address.ss_family == AF_UNIX)
                snprintf(ret, size, "unix:%.*s", (int)sizeof local->sun_path, local->sun_path);
        if (address.ss_family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host))
                snprintf(ret, size, "%s:%u", host, ntohs(v4->sin_port));
        if (address.ss_family == AF_INET6 && inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host))
                snprintf(ret, size, "[%s]:%u", host, ntohs(v6->sin6_port));
        return is_loopback(&address);
}

int http_bind(const char *given, int *ret_fd, struct csn_error *err)
{
        struct sockaddr_storage address = { 0 };
        socklen_t len = 0;
        const int yes = 1;
        if (parse_address(given, &address, &len, err) < 0)
                return -err->code;
        auto_fd fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socket");
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (address.ss_family == AF_UNIX)
                unlink(given + 5);
        if (bind(fd, (struct sockaddr *)&address, len) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "bind %s (engine.http)", given);
        *ret_fd = take_fd(&fd);
        return 0;
}
