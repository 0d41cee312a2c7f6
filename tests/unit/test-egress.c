/*
 * The proxy: which hosts and addresses pass, how a request is read, and what a connection does.
 *
 * There is no global address here, so the tests of connections judge addresses themselves: 127.0.0.1 and
 * 127.0.0.2 are "global", all else is what it is.
 */
#include "engine/egress.h"

#include "tests/unit/tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* ---- addresses ---- */

/* Each class as the beginning of its text; "" is global. */
static const struct { const char *address, *class_; } addresses[] = {
        { "0.0.0.0", "this network" },        { "0.255.255.255", "this network" },   { "1.0.0.0", "" },
        { "1.1.1.1", "" },                    { "8.8.8.8", "" },                     { "9.255.255.255", "" },
        { "10.0.0.0", "private" },            { "10.1.2.3", "private" },             { "10.255.255.255", "private" },
        { "11.0.0.0", "" },                   { "93.184.215.14", "" },               { "100.63.255.255", "" },
        { "100.64.0.0", "shared" },           { "100.100.100.200", "shared" },       { "100.127.255.255", "shared" },
        { "100.128.0.0", "" },                { "126.255.255.255", "" },             { "127.0.0.0", "loopback" },
        { "127.0.0.1", "loopback" },          { "127.255.255.255", "loopback" },     { "128.0.0.0", "" },
        { "168.63.129.15", "" },              { "168.63.129.16", "metadata" },       { "168.63.129.17", "" },
        { "169.253.255.255", "" },            { "169.254.0.0", "link-local" },       { "169.254.169.254", "link-local" },
        { "169.254.170.2", "link-local" },    { "169.254.255.255", "link-local" },   { "169.255.0.0", "" },
        { "172.15.255.255", "" },             { "172.16.0.0", "private" },           { "172.31.255.255", "private" },
        { "172.32.0.0", "" },                 { "191.255.255.255", "" },             { "192.0.0.0", "protocol" },
        { "192.0.0.192", "protocol" },        { "192.0.0.255", "protocol" },         { "192.0.1.0", "" },
        { "192.0.1.255", "" },                { "192.0.2.0", "documentation" },      { "192.0.2.255", "documentation" },
        { "192.0.3.0", "" },                  { "192.88.98.255", "" },               { "192.88.99.0", "6to4" },
        { "192.88.99.255", "6to4" },          { "192.88.100.0", "" },                { "192.167.255.255", "" },
        { "192.168.0.0", "private" },         { "192.168.255.255", "private" },      { "192.169.0.0", "" },
        { "198.17.255.255", "" },             { "198.18.0.0", "benchmarks" },        { "198.19.255.255", "benchmarks" },
        { "198.20.0.0", "" },                 { "198.51.99.255", "" },               { "198.51.100.0", "documentation" },
        { "198.51.100.255", "documentation" }, { "198.51.101.0", "" },               { "203.0.112.255", "" },
        { "203.0.113.0", "documentation" },   { "203.0.113.255", "documentation" },  { "203.0.114.0", "" },
        { "223.255.255.255", "" },            { "224.0.0.0", "multicast" },          { "239.255.255.255", "multicast" },
        { "240.0.0.0", "reserved" },          { "255.255.255.254", "reserved" },     { "255.255.255.255", "broadcast" },

        { "::", "unspecified" },              { "::1", "loopback" },                 { "::2", "this network" },
        { "::ffff", "this network" },         { "::127.0.0.1", "loopback" },         { "::10.0.0.1", "private" },
        { "::8.8.8.8", "" },                  { "::ffff:127.0.0.1", "loopback" },    { "::ffff:169.254.169.254", "link-local" },
        { "::ffff:8.8.8.8", "" },             { "::ffff:0:127.0.0.1", "loopback" },  { "::fffe:8.8.8.8", "reserved" },
        { "::1:0:0:0", "reserved" },          { "64:ff9a::8.8.8.8", "reserved" },    { "64:ff9b::8.8.8.8", "" },
        { "64:ff9b::10.0.0.1", "private" },   { "64:ff9b::7f00:1", "loopback" },     { "64:ff9b:0:0:0:1::", "reserved" },
        { "64:ff9b:1::8.8.8.8", "local" },    { "64:ff9b:1:ffff::1", "local" },      { "64:ff9b:2::", "reserved" },
        { "ff:ffff::", "reserved" },          { "100::", "discard" },                { "100::ffff:ffff:ffff:ffff", "discard" },
        { "100:0:0:1::", "reserved" },        { "1fff:ffff::", "reserved" },         { "2000::", "" },
        { "2001::", "this network" },         { "2001:0:7f00:1::", "loopback" },     { "2001:0:808:808::f7f7:f7f7", "" },
        { "2001:0:808:808::80ff:fffe", "loopback" },                                 { "2001:0:808:808::5601:5601", "link-local" },
        { "2001:0:a00:1::f7f7:f7f7", "private" },                                    { "2001:1::", "protocol" },
        { "2001:2::", "protocol" },           { "2001:20::", "protocol" },           { "2001:1ff:ffff::", "protocol" },
        { "2001:200::", "" },                 { "2001:4860:4860::8888", "" },        { "2001:db7:ffff::", "" },
        { "2001:db8::", "documentation" },    { "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "documentation" },
        { "2001:db9::", "" },                 { "2001:ffff::", "" },                 { "2002::", "this network" },
        { "2002:a00:1::", "private" },        { "2002:7f00:1::", "loopback" },       { "2002:c0a8:1::", "private" },
        { "2002:a9fe:a9fe::", "link-local" }, { "2002:808:808::1", "" },             { "2002:ffff:ffff::", "broadcast" },
        { "2003::", "" },                     { "2606:2800:21f:cb07::1", "" },       { "2a00::200:5efe:10.0.0.1", "private" },
        { "2a00::5efe:127.0.0.1", "loopback" }, { "2a00::5efe:8.8.8.8", "" },        { "3ffe:ffff::", "" },
        { "3fff::", "documentation" },        { "3fff:fff::", "documentation" },     { "3fff:1000::", "" },
        { "3fff:ffff:ffff::", "" },           { "4000::", "reserved" },              { "5f00::", "reserved" },
        { "fbff:ffff::", "reserved" },        { "fc00::", "private" },               { "fd00::1", "private" },
        { "fd00:ec2::254", "private" },       { "fdff:ffff:ffff::", "private" },     { "fe00::", "reserved" },
        { "fe7f:ffff::", "reserved" },        { "fe80::", "link-local" },            { "fe80::1", "link-local" },
        { "febf:ffff::", "link-local" },      { "fec0::", "site-local" },            { "feff:ffff::", "site-local" },
        { "ff00::", "multicast" },            { "ff02::1", "multicast" },
        { "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast" },
};

static void every_border_of_every_range_is_where_it_should_be(void)
{
        for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
                struct egress_address address = { .len = strchr(addresses[i].address, ':') ? 16 : 4 };
                if (inet_pton(address.len == 4 ? AF_INET : AF_INET6, addresses[i].address, address.bytes) != 1)
                        CHECK(!"the table's addresses are addresses");
                const char *class_ = egress_class(&address), *want = addresses[i].class_;
                bool good = *want ? class_ && strncmp(class_, want, strlen(want)) == 0 : !class_;
                if (!good)
                        printf("# %s is %s\n", addresses[i].address, class_ ? class_ : "global");
                CHECK(good);
        }
        CHECK(ARRAY_LEN(addresses) >= 120);
        struct egress_address none = { .len = 0 };
        CHECK(egress_class(&none) != NULL);
}

/* What a host is read as: an address, "name", or NULL for an error. */
static const struct { const char *host, *is; } hosts[] = {
        { "example.org", "name" },           { "EXAMPLE.org.", "name" },         { "a", "name" },
        { "_dmarc.example.org", "name" },    { "xn--bcher-kva.example", "name" }, { "1.2.3.4.nip.io", "name" },
        { "0x7f.0.0.1.example", "name" },    { "deadbeef", "name" },             { "7f.0.0.0a", "name" },
        { "1.2.3.4", "1.2.3.4" },            { "1.2.3.4.", "1.2.3.4" },          { "2130706433", "127.0.0.1" },
        { "017700000001", "127.0.0.1" },     { "0x7f000001", "127.0.0.1" },      { "0X7F000001", "127.0.0.1" },
        { "127.1", "127.0.0.1" },            { "127.0.1", "127.0.0.1" },         { "0177.0.0.1", "127.0.0.1" },
        { "0x7f.0x0.0x0.0x1", "127.0.0.1" }, { "127.0x000001", "127.0.0.1" },    { "0300.0250.0.01", "192.168.0.1" },
        { "0", "0.0.0.0" },                  { "00", "0.0.0.0" },                { "4294967295", "255.255.255.255" },
        { "2852039166", "169.254.169.254" }, { "169.254.43518", "169.254.169.254" }, { "0xa9fea9fe", "169.254.169.254" },
        { "0xa9.254.0251.0xfe", "169.254.169.254" }, { "10.16777215", "10.255.255.255" },
        { "[::1]", "[::1]" },                { "[0:0:0:0:0:0:0:1]", "[::1]" },   { "[FE80::1]", "[fe80::1]" },
        { "[::ffff:127.0.0.1]", "127.0.0.1" }, { "[::ffff:7f00:1]", "127.0.0.1" }, { "[::127.0.0.1]", "[::127.0.0.1]" },
        { "[64:ff9b::a00:1]", "[64:ff9b::a00:1]" },
        { "", NULL },                        { ".", NULL },                      { "..", NULL },
        { "a..b", NULL },                    { ".a", NULL },                     { "a..", NULL },
        { "4294967296", NULL },              { "256.0.0.1", NULL },              { "1.2.3.256", NULL },
        { "1.2.3.4.5", NULL },               { "1.2.3.4..", NULL },              { "1..2", NULL },
        { "08", NULL },                      { "0x", NULL },                     { "1.2.3.0x", NULL },
        { "0x100000000", NULL },             { "1.16777216", NULL },             { "example.123", NULL },
        { "example.0x1f", NULL },            { "99999999999999999999999", NULL }, { "0x7f.1.2.3.4", NULL },
        { "::1", NULL },                     { "[::1", NULL },                   { "::1]", NULL },
        { "[]", NULL },                      { "[fe80::1%25eth0]", NULL },       { "[fe80::1%eth0]", NULL },
        { "[::1%lo]", NULL },                { "[127.0.0.1]", NULL },            { "[v1.fe80::a]", NULL },
        { "[1::2::3]", NULL },               { "[::ffff:127.1]", NULL },         { "[::1]a", NULL },
        { "user@example.org", NULL },        { "exa mple.org", NULL },           { "example.org/", NULL },
        { "b\xc3\xbc" "cher.example", NULL }, { "127\xe3\x80\x82" "1", NULL },   { "ex%61mple.org", NULL },
        { "example.org\\", NULL },           { "example.org\t", NULL },          { "*.example.org", NULL },
};

static void no_notation_of_an_address_is_taken_for_a_name(void)
{
        for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
                struct egress_target target = { .port = 7 };
                struct csn_error err;
                int rc = egress_host(hosts[i].host, strlen(hosts[i].host), &target, &err);
                const char *is = hosts[i].is;
                bool good = !is ? rc == -CSN_E_INPUT : rc == 0 && target.port == 7 &&
                            (strcmp(is, "name") == 0 ? !target.literal : target.literal && strcmp(target.host, is) == 0);
                if (!good)
                        printf("# %s -> %s\n", hosts[i].host, rc < 0 ? err.text : target.host);
                CHECK(good);
        }
        struct egress_target target = { 0 };
        struct csn_error err;
        CHECK(egress_host("EXAMPLE.Org.", 12, &target, &err) == 0 && strcmp(target.host, "example.org") == 0);
        CHECK(egress_host("a\0b", 3, &target, &err) < 0);
        CHECK(egress_host("[::1\0]", 6, &target, &err) < 0);
        char longest[256];
        memset(longest, 'a', sizeof longest);
        for (size_t i = 60; i < sizeof longest; i += 61)
                longest[i] = '.';
        CHECK(egress_host(longest, 253, &target, &err) == 0);
        CHECK(egress_host(longest, 254, &target, &err) < 0);
        CHECK(egress_host("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.b", 66, &target, &err) < 0);
}

/* ---- rules ---- */

static void rules_are_hosts_and_perhaps_a_port(void)
{
        static const char *const good[] = { "pypi.org", "*.example.com", "host:8443", "PyPI.org.", "*.a.b.c:1", "h:65535", "localhost" };
        static const char *const bad[] = { "", "*", "*.com", "*.", "a.*.com", "*a.com", "http://pypi.org", "pypi.org/x", "h:0", "h:65536",
                                           "h:", "h:x", "h:080", "h:1:2", "127.0.0.1", "0x7f.1", "2130706433", "[::1]", "[::1]:80", "::1",
                                           "a b", "b\xc3\xbc" "cher.de", "a@b", ":80", "*:80", "h:123456" };
        struct csn_error err;
        for (size_t i = 0; i < ARRAY_LEN(good); i++)
                CHECK(egress_check_rule(good[i], &err) == 0);
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                if (egress_check_rule(bad[i], &err) != -CSN_E_INPUT)
                        printf("# \"%s\" is a rule\n", bad[i]);
                CHECK(egress_check_rule(bad[i], &err) == -CSN_E_INPUT && err.text[0]);
        }
}

static bool allows(bool public_, const char *host, unsigned port)
{
        static char *const allowed[] = { "pypi.org", "*.Example.COM.", "host.test:8443" };
        struct egress_rules rules = { .public_ = public_, .hosts = allowed, .hosts_n = ARRAY_LEN(allowed) };
        struct egress_target target = { .port = port };
        char why[EGRESS_TEXT_MAX] = "";
        struct csn_error err;
        CHECK(egress_host(host, strlen(host), &target, &err) == 0);
        bool answer = egress_allows(&rules, &target, why);
        CHECK(answer || strstr(why, target.host));
        return answer;
}

static void rules_allow_what_they_name_and_nothing_else(void)
{
        CHECK(allows(false, "pypi.org", 443) && allows(false, "pypi.org", 80) && allows(false, "PYPI.ORG.", 443));
        CHECK(!allows(false, "pypi.org", 22) && !allows(false, "pypi.org", 8443) && !allows(false, "pypi.org", 444));
        CHECK(!allows(false, "a.pypi.org", 443) && !allows(false, "xpypi.org", 443) && !allows(false, "pypi.org.evil.test", 443));
        CHECK(!allows(false, "org", 443) && !allows(false, "pypi.or", 443));
        CHECK(allows(false, "www.example.com", 443) && allows(false, "a.b.example.com", 80));
        CHECK(!allows(false, "example.com", 443) && !allows(false, "xexample.com", 443) && !allows(false, "www.example.com.test", 443));
        CHECK(allows(false, "host.test", 8443) && !allows(false, "host.test", 443) && !allows(false, "host.test", 80));
        CHECK(!allows(false, "8.8.8.8", 443) && !allows(false, "[2606:2800:21f:cb07::1]", 443) && !allows(false, "134744072", 80));
        CHECK(allows(true, "anything.test", 443) && allows(true, "8.8.8.8", 80) && !allows(true, "anything.test", 25));
        CHECK(allows(true, "host.test", 8443) && allows(true, "host.test", 443) && !allows(true, "8.8.8.8", 8443));
}

/* ---- the parser ---- */

/* What it becomes: the rewritten head, "tunnel HOST:PORT", or NULL for an error. */
static const struct { const char *head, *becomes; } heads[] = {
        { "CONNECT example.org:443 HTTP/1.1\r\n\r\n", "tunnel example.org:443" },
        { "CONNECT EXAMPLE.org.:443 HTTP/1.0\r\nHost: x\r\nProxy-Authorization: y\r\n\r\n", "tunnel example.org:443" },
        { "CONNECT [::1]:443 HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "tunnel [::1]:443" },
        { "CONNECT 2130706433:80 HTTP/1.1\r\n\r\n", "tunnel 127.0.0.1:80" },
        { "GET http://example.org/a?b=c HTTP/1.1\r\nHost: evil.test\r\nAccept: */*\r\nProxy-Connection: keep-alive\r\n"
          "Connection: keep-alive, X-Own\r\nX-Own: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\n\r\n",
          "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\nConnection: close\r\n\r\n" },
        { "GET http://example.org HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nHost: example.org\r\nConnection: close\r\n\r\n" },
        { "GET HTTP://example.org:80?x HTTP/1.1\r\n\r\n", "GET /?x HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n" },
        { "OPTIONS http://example.org:8080 HTTP/1.1\r\n\r\n",
          "OPTIONS * HTTP/1.1\r\nHost: example.org:8080\r\nConnection: close\r\n\r\n" },
        { "POST http://[2606:2800:21f:cb07::1]/ HTTP/1.1\r\nContent-Length: 12\r\nX:\t a \t\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: [2606:2800:21f:cb07::1]\r\nContent-Length: 12\r\nX: a\r\nConnection: close\r\n\r\n" },
        { "PUT http://h/ HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n",
          "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n" },
        { "GET http://h/ HTTP/1.1\r\nEmpty:\r\nLatin: \xe9\r\n\r\n",
          "GET / HTTP/1.1\r\nHost: h\r\nEmpty: \r\nLatin: \xe9\r\nConnection: close\r\n\r\n" },
        { "\r\n\r\n", NULL },
        { "\r\nGET http://h/ HTTP/1.1\r\n\r\n", NULL },
        { "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", NULL },
        { "GET https://example.org/ HTTP/1.1\r\n\r\n", NULL },
        { "GET ftp://example.org/ HTTP/1.1\r\n\r\n", NULL },
        { "GET http:///x HTTP/1.1\r\n\r\n", NULL },
        { "GET http:// HTTP/1.1\r\n\r\n", NULL },
        { "GET http://user@h/ HTTP/1.1\r\n\r\n", NULL },
        { "GET http://allowed.test\\@evil.test/ HTTP/1.1\r\n\r\n", NULL },
        { "GET http://allowed.test#@evil.test/ HTTP/1.1\r\n\r\n", NULL },
        { "GET http://h%2e/ HTTP/1.1\r\n\r\n", NULL },
        { "GET http://h/a b HTTP/1.1\r\n\r\n", NULL },
        { "GET  http://h/ HTTP/1.1\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1 \r\n\r\n", NULL },
        { "GET http://h/ HTTP/2.0\r\n\r\n", NULL },
        { "GET http://h/ http/1.1\r\n\r\n", NULL },
        { "GET http://h/\r\n\r\n", NULL },
        { "GET http://h/ \r\n\r\n", NULL },
        { "G(T http://h/ HTTP/1.1\r\n\r\n", NULL },
        { " GET http://h/ HTTP/1.1\r\n\r\n", NULL },
        { "GET http://h:/ HTTP/1.1\r\n\r\n", NULL },
        { "GET http://h:0/ HTTP/1.1\r\n\r\n", NULL },
        { "GET http://h:080/ HTTP/1.1\r\n\r\n", NULL },
        { "GET http://h:65536/ HTTP/1.1\r\n\r\n", NULL },
        { "GET http://h:80:80/ HTTP/1.1\r\n\r\n", NULL },
        { "GET http://[::1]x/ HTTP/1.1\r\n\r\n", NULL },
        { "GET http://::1/ HTTP/1.1\r\n\r\n", NULL },
        { "GET http://h/\x7f HTTP/1.1\r\n\r\n", NULL },
        { "GET http://h/\xc3\xa9 HTTP/1.1\r\n\r\n", NULL },
        { "CONNECT example.org HTTP/1.1\r\n\r\n", NULL },
        { "CONNECT http://example.org/ HTTP/1.1\r\n\r\n", NULL },
        { "CONNECT example.org:443/ HTTP/1.1\r\n\r\n", NULL },
        { "CONNECT ::1:443 HTTP/1.1\r\n\r\n", NULL },
        { "CONNECT :443 HTTP/1.1\r\n\r\n", NULL },
        { "CONNECT example.org:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", NULL },
        { "connect example.org:443 HTTP/1.1\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\n\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nA: b\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nA: b\rc\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nA: b\r\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\n A: b\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nA : b\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nA\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\n: b\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nA\x01: b\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nA: b\x0b\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nContent-Length: \r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nContent-Length: 9999999999999999999\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nContent-Length: 0x1\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nTransfer-Encoding: \r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nConnection: Content-Length\r\nContent-Length: 3\r\n\r\n", NULL },
        { "GET http://h/ HTTP/1.1\r\nConnection: x, transfer-encoding\r\n\r\n", NULL },
};

static void describe(const struct egress_request *request, const char *head, struct buf *buf)
{
        buf_init(buf, 65536);
        if (request->body.kind == EGRESS_BODY_TUNNEL)
                buf_printf(buf, "tunnel %s:%u", request->target.host, request->target.port);
        else
                CHECK(egress_rewrite(request, head, buf));
}

static void requests_are_read_strictly(void)
{
        for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
                struct egress_request request;
                struct csn_error err;
                struct buf got = { 0 };
                ssize_t used = egress_parse(heads[i].head, strlen(heads[i].head), &request, &err);
                if (used > 0)
                        describe(&request, heads[i].head, &got);
                const char *want = heads[i].becomes;
                bool good = want ? used == (ssize_t)strlen(heads[i].head) && strcmp(got.bytes, want) == 0 : used == -CSN_E_INPUT;
                if (!good)
                        printf("# %zu: %s -> %s\n", i, heads[i].head, used < 0 ? err.text : used ? got.bytes : "more");
                CHECK(good);
                buf_done(&got);
        }
        struct egress_request request;
        struct csn_error err;
        static const char nul[] = "GET http://h/ HTTP/1.1\r\nA: \0\r\n\r\n", early[] = "CONNECT h:443 HTTP/1.1\r\n\r\n\0\1\2";
        CHECK(egress_parse(nul, sizeof nul - 1, &request, &err) < 0);
        CHECK(egress_parse(nul, 28, &request, &err) < 0);
        CHECK(egress_parse(early, sizeof early - 1, &request, &err) == (ssize_t)sizeof early - 4);
}

static void a_request_cut_at_any_byte_is_not_there_yet(void)
{
        for (size_t i = 0; i < ARRAY_LEN(heads); i++)
                for (size_t len = 0; len < strlen(heads[i].head); len++) {
                        struct egress_request request;
                        struct csn_error err;
                        char *exact = mem_copy(heads[i].head, len);   /* so that the sanitizer sees a read behind it */
                        ssize_t used = egress_parse(exact, len, &request, &err);
                        CHECK(heads[i].becomes ? used == 0 : used <= 0);
                        free(exact);
                }
}

static void heads_have_a_limit_in_bytes_and_in_fields(void)
{
        static char head[40000];
        struct egress_request request;
        struct csn_error err;
        for (int fields = 63; fields <= 66; fields++) {
                size_t len = (size_t)snprintf(head, sizeof head, "GET http://h/ HTTP/1.1\r\n");
                for (int i = 0; i < fields; i++)
                        len += (size_t)snprintf(head + len, sizeof head - len, "X: y\r\n");
                len += (size_t)snprintf(head + len, sizeof head - len, "\r\n");
                CHECK((egress_parse(head, len, &request, &err) > 0) == (fields <= EGRESS_HEADERS_MAX));
        }
        for (size_t total = EGRESS_HEAD_MAX - 1; total <= EGRESS_HEAD_MAX + 1; total++) {
                size_t len = (size_t)snprintf(head, sizeof head, "GET http://h/ HTTP/1.1\r\nX: ");
                memset(head + len, 'y', total - len - 4);
                memcpy(head + total - 4, "\r\n\r\n", 4);
                CHECK((egress_parse(head, total, &request, &err) > 0) == (total <= EGRESS_HEAD_MAX));
                CHECK(egress_parse(head, total - 1, &request, &err) <= 0);
        }
        memset(head, 'x', sizeof head);
        CHECK(egress_parse(head, EGRESS_HEAD_MAX - 1, &request, &err) == 0);
        CHECK(egress_parse(head, EGRESS_HEAD_MAX, &request, &err) < 0);
}

static const struct { const char *bytes; ssize_t taken; bool done; } chunks[] = {
        { "0\r\n\r\n", 5, true },
        { "0\r\n\r\nGET / HTTP/1.1\r\n", 5, true },
        { "3\r\nabc\r\n0\r\n\r\nmore", 13, true },
        { "A;x=\"y\"\r\n0123456789\r\n00\r\nT: v\r\n\r\n", 33, true },
        { "3\r\nabc\r\n", 8, false },
        { "3 \r\nabc\r\n", -1, false },
        { "3\nabc\n0\n\n", -1, false },
        { "\r\n", -1, false },
        { ";\r\n", -1, false },
        { "0x3\r\nabc", -1, false },
        { "-1\r\n", -1, false },
        { "3\r\nabcd\r\n", -1, false },
        { "3\r\nabc\n", -1, false },
        { "0\r\nT: v\n\r\n", -1, false },
        { "0\r\n T: v\r\n\r\n", -1, false },
        { "0\r\n\rx", -1, false },
        { "fffffffffffffff\r\n", -1, false },
        { "3;\x01\r\n", -1, false },
};

static void a_body_ends_where_it_says(void)
{
        for (size_t i = 0; i < ARRAY_LEN(chunks); i++)
                for (int split = 0; split < 2; split++) {
                        struct egress_body body = { .kind = EGRESS_BODY_CHUNKED };
                        struct csn_error err;
                        ssize_t taken = 0, n = 0;
                        size_t len = strlen(chunks[i].bytes), step = split ? 1 : len;
                        for (size_t at = 0; at < len && n >= 0; at += step) {
                                n = egress_body_take(&body, chunks[i].bytes + at, step, &err);
                                taken = n < 0 ? -1 : taken + n;
                        }
                        CHECK(taken == chunks[i].taken && body.done == chunks[i].done);
                }
        struct egress_body length = { .kind = EGRESS_BODY_LENGTH, .left = 5 };
        struct csn_error err;
        CHECK(egress_body_take(&length, "abc", 3, &err) == 3 && !length.done);
        CHECK(egress_body_take(&length, "defg", 4, &err) == 2 && length.done);
        CHECK(egress_body_take(&length, "h", 1, &err) == 0);
        static char forever[9000];
        memset(forever, '0', sizeof forever);
        struct egress_body zeros = { .kind = EGRESS_BODY_CHUNKED };
        CHECK(egress_body_take(&zeros, forever, sizeof forever, &err) < 0);
        memset(forever, 't', sizeof forever);
        struct egress_body trailers = { .kind = EGRESS_BODY_CHUNKED };
        CHECK(egress_body_take(&trailers, "0\r\n", 3, &err) == 3 && egress_body_take(&trailers, forever, sizeof forever, &err) < 0);
}

/* ---- connections ---- */

static struct loop *loop;
static struct egress *egress;
static unsigned proxy_port, server_port;
static int server_fd = -1, dns_fd = -1;
static char rule_text[64], dns_text[64], last_host[300], last_refusal[EGRESS_TEXT_MAX];
static int news;

static const char *judge(const struct egress_address *address)
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

static void spin(uint64_t ms)
{
        struct csn_error err;
        for (uint64_t end = clock_ms() + ms; clock_ms() < end;) {
                answer_names();
                loop_step(loop, 2, &err);
        }
}

/* Until so many bytes came, or the end; returns how many. */
static size_t hear(int fd, char *text, size_t size)
{
        size_t len = 0;
        struct csn_error err;
        for (uint64_t end = clock_ms() + 5000; clock_ms() < end && len < size - 1;) {
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
        for (uint64_t end = clock_ms() + 3000; clock_ms() < end;) {
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
        snprintf(request, sizeof request, "POST http://good.egress.test:%u/p HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 4\r\n"
                 "Proxy-Connection: keep-alive\r\n\r\nbodyGET http://evil.test/ HTTP/1.1\r\n\r\n", server_port);
        snprintf(want, sizeof want, "POST /p HTTP/1.1\r\nHost: good.egress.test:%u\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody",
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
        snprintf(request, sizeof request, "PUT http://good.egress.test:%u/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", server_port);
        say(client, request);
        auto_fd server = served();
        spin(20);
        say(client, "c\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n");
        spin(50);
        hear(server, text, (size_t)snprintf(NULL, 0, "PUT / HTTP/1.1\r\nHost: good.egress.test:%u\r\nTransfer-Encoding: chunked\r\n"
                                            "Connection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n", server_port) + 1);
        CHECK(strlen(text) > 13 && strcmp(text + strlen(text) - 13, "3\r\nabc\r\n0\r\n\r\n") == 0);
        CHECK(recv(server, text, sizeof text, 0) < 0 && errno == EAGAIN);
        tear_down();
}

static void refusals_say_why_in_the_status_line_and_the_body(void)
{
        set_up((struct egress_rules){ 0 });
        CHECK(ask("CONNECT example.org:443 HTTP/1.1\r\n\r\n") == 403);
        CHECK(strstr(last_answer, "HTTP/1.1 403 Forbidden (example.org is not among the hosts named in allow)\r\n") == last_answer);
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
        static const char *const refused[] = { "10.0.0.1", "169.254.169.254", "2852039166", "0xa9fea9fe", "[::1]", "[::ffff:10.0.0.1]",
                                               "[fd00::1]", "0", "127.0.0.3", "017700000003" };
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
        set_up((struct egress_rules){ .head_ms = 150, .connect_ms = 300, .idle_ms = 200 });
        uint64_t start = clock_ms();
        CHECK(ask("GET http://good") == 408 && clock_ms() - start >= 150);
        start = clock_ms();
        CHECK(ask_for("silent") == 504 && clock_ms() - start >= 200 && clock_ms() - start < 1000);
        auto_fd client = -1;
        auto_fd server = -1;
        char text[100];
        tunnel("good", &client, &server);
        for (int i = 0; i < 4; i++) {                /* longer than idle_ms, and never idle */
                spin(100);
                say(client, "x");
        }
        CHECK(hear(server, text, 5) == 4);
        start = clock_ms();
        CHECK(hear(client, text, sizeof text) == 0 && clock_ms() - start >= 100 && clock_ms() - start < 1000);
        tear_down();
}

static void a_client_that_goes_while_its_name_is_resolved_is_no_trouble(void)
{
        set_up((struct egress_rules){ .connect_ms = 200 });
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
        spin(400);
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
        spin(20);
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
        for (uint64_t quiet = clock_ms(); clock_ms() - quiet < 100;) {
                ssize_t n = send(server, block + sent % sizeof block, sizeof block - sent % sizeof block, MSG_NOSIGNAL);
                if (n > 0) {
                        sent += (size_t)n;
                        quiet = clock_ms();
                }
                spin(1);
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
        RUN(every_border_of_every_range_is_where_it_should_be);
        RUN(no_notation_of_an_address_is_taken_for_a_name);
        RUN(rules_are_hosts_and_perhaps_a_port);
        RUN(rules_allow_what_they_name_and_nothing_else);
        RUN(requests_are_read_strictly);
        RUN(a_request_cut_at_any_byte_is_not_there_yet);
        RUN(heads_have_a_limit_in_bytes_and_in_fields);
        RUN(a_body_ends_where_it_says);
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
