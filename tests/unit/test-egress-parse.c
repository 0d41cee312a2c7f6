/* What may pass: hosts in every notation, classes of addresses, rules; and how strictly a request is read. */
#include "egress/egress.h"

#include "tests/unit/tap.h"

#include <arpa/inet.h>

/* ---- addresses ---- */

/* Each class as the beginning of its text; "" is global. */
static const struct { const char *address, *class_;
} addresses[] = {
        { "0.0.0.0", "this network" },
        { "0.255.255.255", "this network" },
        { "1.0.0.0", "" },
        { "1.1.1.1", "" },
        { "8.8.8.8", "" },
        { "9.255.255.255", "" },
        { "10.0.0.0", "private" },
        { "10.1.2.3", "private" },
        { "10.255.255.255", "private" },
        { "11.0.0.0", "" },
        { "93.184.215.14", "" },
        { "100.63.255.255", "" },
        { "100.64.0.0", "shared" },
        { "100.100.100.200", "shared" },
        { "100.127.255.255", "shared" },
        { "100.128.0.0", "" },
        { "126.255.255.255", "" },
        { "127.0.0.0", "loopback" },
        { "127.0.0.1", "loopback" },
        { "127.255.255.255", "loopback" },
        { "128.0.0.0", "" },
        { "168.63.129.15", "" },
        { "168.63.129.16", "metadata" },
        { "168.63.129.17", "" },
        { "169.253.255.255", "" },
        { "169.254.0.0", "link-local" },
        { "169.254.169.254", "link-local" },
        { "169.254.170.2", "link-local" },
        { "169.254.255.255", "link-local" },
        { "169.255.0.0", "" },
        { "172.15.255.255", "" },
        { "172.16.0.0", "private" },
        { "172.31.255.255", "private" },
        { "172.32.0.0", "" },
        { "191.255.255.255", "" },
        { "192.0.0.0", "protocol" },
        { "192.0.0.192", "protocol" },
        { "192.0.0.255", "protocol" },
        { "192.0.1.0", "" },
        { "192.0.1.255", "" },
        { "192.0.2.0", "documentation" },
        { "192.0.2.255", "documentation" },
        { "192.0.3.0", "" },
        { "192.88.98.255", "" },
        { "192.88.99.0", "6to4" },
        { "192.88.99.255", "6to4" },
        { "192.88.100.0", "" },
        { "192.167.255.255", "" },
        { "192.168.0.0", "private" },
        { "192.168.255.255", "private" },
        { "192.169.0.0", "" },
        { "198.17.255.255", "" },
        { "198.18.0.0", "benchmarks" },
        { "198.19.255.255", "benchmarks" },
        { "198.20.0.0", "" },
        { "198.51.99.255", "" },
        { "198.51.100.0", "documentation" },
        { "198.51.100.255", "documentation" },
        { "198.51.101.0", "" },
        { "203.0.112.255", "" },
        { "203.0.113.0", "documentation" },
        { "203.0.113.255", "documentation" },
        { "203.0.114.0", "" },
        { "223.255.255.255", "" },
        { "224.0.0.0", "multicast" },
        { "239.255.255.255", "multicast" },
        { "240.0.0.0", "reserved" },
        { "255.255.255.254", "reserved" },
        { "255.255.255.255", "broadcast" },

        { "::", "unspecified" },
        { "::1", "loopback" },
        { "::2", "this network" },
        { "::ffff", "this network" },
        { "::127.0.0.1", "loopback" },
        { "::10.0.0.1", "private" },
        { "::8.8.8.8", "" },
        { "::ffff:127.0.0.1", "loopback" },
        { "::ffff:169.254.169.254", "link-local" },
        { "::ffff:8.8.8.8", "" },
        { "::ffff:0:127.0.0.1", "loopback" },
        { "::fffe:8.8.8.8", "reserved" },
        { "::1:0:0:0", "reserved" },
        { "64:ff9a::8.8.8.8", "reserved" },
        { "64:ff9b::8.8.8.8", "" },
        { "64:ff9b::10.0.0.1", "private" },
        { "64:ff9b::7f00:1", "loopback" },
        { "64:ff9b:0:0:0:1::", "reserved" },
        { "64:ff9b:1::8.8.8.8", "local" },
        { "64:ff9b:1:ffff::1", "local" },
        { "64:ff9b:2::", "reserved" },
        { "ff:ffff::", "reserved" },
        { "100::", "discard" },
        { "100::ffff:ffff:ffff:ffff", "discard" },
        { "100:0:0:1::", "reserved" },
        { "1fff:ffff::", "reserved" },
        { "2000::", "" },
        { "2001::", "this network" },
        { "2001:0:7f00:1::", "loopback" },
        { "2001:0:808:808::f7f7:f7f7", "" },
        { "2001:0:808:808::80ff:fffe", "loopback" },
        { "2001:0:808:808::5601:5601", "link-local" },
        { "2001:0:a00:1::f7f7:f7f7", "private" },
        { "2001:1::", "protocol" },
        { "2001:2::", "protocol" },
        { "2001:20::", "protocol" },
        { "2001:1ff:ffff::", "protocol" },
        { "2001:200::", "" },
        { "2001:4860:4860::8888", "" },
        { "2001:db7:ffff::", "" },
        { "2001:db8::", "documentation" },
        { "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "documentation" },
        { "2001:db9::", "" },
        { "2001:ffff::", "" },
        { "2002::", "this network" },
        { "2002:a00:1::", "private" },
        { "2002:7f00:1::", "loopback" },
        { "2002:c0a8:1::", "private" },
        { "2002:a9fe:a9fe::", "link-local" },
        { "2002:808:808::1", "" },
        { "2002:ffff:ffff::", "broadcast" },
        { "2003::", "" },
        { "2606:2800:21f:cb07::1", "" },
        { "2a00::200:5efe:10.0.0.1", "private" },
        { "2a00::5efe:127.0.0.1", "loopback" },
        { "2a00::5efe:8.8.8.8", "" },
        { "3ffe:ffff::", "" },
        { "3fff::", "documentation" },
        { "3fff:fff::", "documentation" },
        { "3fff:1000::", "" },
        { "3fff:ffff:ffff::", "" },
        { "4000::", "reserved" },
        { "5f00::", "reserved" },
        { "fbff:ffff::", "reserved" },
        { "fc00::", "private" },
        { "fd00::1", "private" },
        { "fd00:ec2::254", "private" },
        { "fdff:ffff:ffff::", "private" },
        { "fe00::", "reserved" },
        { "fe7f:ffff::", "reserved" },
        { "fe80::", "link-local" },
        { "fe80::1", "link-local" },
        { "febf:ffff::", "link-local" },
        { "fec0::", "site-local" },
        { "feff:ffff::", "site-local" },
        { "ff00::", "multicast" },
        { "ff02::1", "multicast" },
        { "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast" },
};

static void every_border_of_every_range_is_where_it_should_be(void)
{
        for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
                struct net_address address = { .len = strchr(addresses[i].address, ':') ? 16 : 4 };
                CHECK(inet_pton(address.len == 4 ? AF_INET : AF_INET6, addresses[i].address, address.bytes) == 1);
                const char *class_ = egress_class(&address), *want = addresses[i].class_;
                bool good = *want ? class_ && strncmp(class_, want, strlen(want)) == 0 : !class_;
                if (!good)
                        printf("# %s is %s\n", addresses[i].address, class_ ? class_ : "global");
                CHECK(good);
        }
        CHECK(ARRAY_LEN(addresses) >= 120);
        struct net_address none = { .len = 0 };
        CHECK(egress_class(&none) != NULL);
}

/* What a host is read as: an address, "name", or NULL for an error. */
static const struct { const char *host, *is;
} hosts[] = {
        { "example.org", "name" },
        { "EXAMPLE.org.", "name" },
        { "a", "name" },
        { "_dmarc.example.org", "name" },
        { "xn--bcher-kva.example", "name" },
        { "1.2.3.4.nip.io", "name" },
        { "0x7f.0.0.1.example", "name" },
        { "deadbeef", "name" },
        { "7f.0.0.0a", "name" },
        { "1.2.3.4", "1.2.3.4" },
        { "1.2.3.4.", "1.2.3.4" },
        { "2130706433", "127.0.0.1" },
        { "017700000001", "127.0.0.1" },
        { "0x7f000001", "127.0.0.1" },
        { "0X7F000001", "127.0.0.1" },
        { "127.1", "127.0.0.1" },
        { "127.0.1", "127.0.0.1" },
        { "0177.0.0.1", "127.0.0.1" },
        { "0x7f.0x0.0x0.0x1", "127.0.0.1" },
        { "127.0x000001", "127.0.0.1" },
        { "0300.0250.0.01", "192.168.0.1" },
        { "0", "0.0.0.0" },
        { "00", "0.0.0.0" },
        { "4294967295", "255.255.255.255" },
        { "2852039166", "169.254.169.254" },
        { "169.254.43518", "169.254.169.254" },
        { "0xa9fea9fe", "169.254.169.254" },
        { "0xa9.254.0251.0xfe", "169.254.169.254" },
        { "10.16777215", "10.255.255.255" },
        { "[::1]", "[::1]" },
        { "[0:0:0:0:0:0:0:1]", "[::1]" },
        { "[FE80::1]", "[fe80::1]" },
        { "[::ffff:127.0.0.1]", "127.0.0.1" },
        { "[::ffff:7f00:1]", "127.0.0.1" },
        { "[::127.0.0.1]", "[::127.0.0.1]" },
        { "[64:ff9b::a00:1]", "[64:ff9b::a00:1]" },
        { "", NULL },
        { ".", NULL },
        { "..", NULL },
        { "a..b", NULL },
        { ".a", NULL },
        { "a..", NULL },
        { "4294967296", NULL },
        { "256.0.0.1", NULL },
        { "1.2.3.256", NULL },
        { "1.2.3.4.5", NULL },
        { "1.2.3.4..", NULL },
        { "1..2", NULL },
        { "08", NULL },
        { "0x", NULL },
        { "1.2.3.0x", NULL },
        { "0x100000000", NULL },
        { "1.16777216", NULL },
        { "example.123", NULL },
        { "example.0x1f", NULL },
        { "99999999999999999999999", NULL },
        { "0x7f.1.2.3.4", NULL },
        { "::1", NULL },
        { "[::1", NULL },
        { "::1]", NULL },
        { "[]", NULL },
        { "[fe80::1%25eth0]", NULL },
        { "[fe80::1%eth0]", NULL },
        { "[::1%lo]", NULL },
        { "[127.0.0.1]", NULL },
        { "[v1.fe80::a]", NULL },
        { "[1::2::3]", NULL },
        { "[::ffff:127.1]", NULL },
        { "[::1]a", NULL },
        { "user@example.org", NULL },
        { "exa mple.org", NULL },
        { "example.org/", NULL },
        { "caf\xc3\xa9", NULL },
        { "127\xe3\x80\x82.1", NULL },
        { "ex%61mple.org", NULL },
        { "example.org\\", NULL },
        { "example.org\t", NULL },
        { "*.example.org", NULL },
};

static void no_notation_of_an_address_is_taken_for_a_name(void)
{
        for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
                struct egress_target target = { .port = 7 };
                struct csn_error err;
                int rc = egress_host(hosts[i].host, strlen(hosts[i].host), &target, &err);
                const char *is = hosts[i].is;
                bool good = !is ? rc == -CSN_E_INPUT
                                : rc == 0 && target.port == 7 &&
                                (strcmp(is, "name") == 0 ? !target.literal
                                                         : target.literal && strcmp(target.host, is) == 0);
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
        static const char *const good[] = { "pypi.org", "*.example.com", "host:8443", "PyPI.org.", "*.a.b.c:1",
                "h:65535", "localhost" };
        static const char *const bad[] = { "", "*", "*.com", "*.", "a.*.com", "*a.com", "http://pypi.org", "pypi.org/x",
                "h:0", "h:65536", "h:", "h:x", "h:080", "h:1:2", "127.0.0.1", "0x7f.1", "2130706433", "[::1]",
                "[::1]:80", "::1", "a b", "caf\xc3\xa9", "a@b", ":80", "*:80", "h:123456" };
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
        CHECK(!allows(false, "a.pypi.org", 443) && !allows(false, "xpypi.org", 443) &&
                !allows(false, "pypi.org.evil.test", 443));
        CHECK(!allows(false, "org", 443) && !allows(false, "pypi.or", 443));
        CHECK(allows(false, "www.example.com", 443) && allows(false, "a.b.example.com", 80));
        CHECK(!allows(false, "example.com", 443) && !allows(false, "xexample.com", 443) &&
                !allows(false, "www.example.com.test", 443));
        CHECK(allows(false, "host.test", 8443) && !allows(false, "host.test", 443) && !allows(false, "host.test", 80));
        CHECK(!allows(false, "8.8.8.8", 443) && !allows(false, "[2606:2800:21f:cb07::1]", 443) &&
                !allows(false, "134744072", 80));
        CHECK(allows(true, "anything.test", 443) && allows(true, "8.8.8.8", 80) && !allows(true, "anything.test", 25));
        CHECK(allows(true, "host.test", 8443) && allows(true, "host.test", 443) && !allows(true, "8.8.8.8", 8443));
}

static bool is_private_host(const char *host, unsigned port)
{
        static char *const entries[] = { "mirror.house:3142", "*.house.example", "10.1.2.3:8080", "[fd00::1]:443" };
        struct egress_rules rules = { .private_hosts = entries, .private_hosts_n = ARRAY_LEN(entries) };
        struct egress_target target = { .port = port };
        struct csn_error err;
        CHECK(egress_host(host, strlen(host), &target, &err) == 0);
        return egress_is_private_host(&rules, &target);
}

static void private_hosts_are_names_and_addresses_with_a_port(void)
{
        static const char *const good[] = { "mirror.house", "mirror.house:3142", "*.house.example", "10.1.2.3",
                "10.1.2.3:8080", "[fd00::1]", "[fd00::1]:8443", "127.0.0.1:3142" };
        static const char *const bad[] = { "", "*", "*.com", "http://mirror.house", "10.0.0.0/8", "10.1.2.3:",
                "[fd00::1", "[fd00::1]:0", "fd00::1", "*.10.1.2.3" };
        struct csn_error err;
        for (size_t i = 0; i < ARRAY_LEN(good); i++)
                CHECK(egress_check_private(good[i], &err) == 0);
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                if (egress_check_private(bad[i], &err) != -CSN_E_INPUT)
                        printf("# \"%s\" is an entry\n", bad[i]);
                CHECK(egress_check_private(bad[i], &err) == -CSN_E_INPUT && err.text[0]);
        }
        CHECK(is_private_host("mirror.house", 3142) && is_private_host("MIRROR.house.", 3142));
        CHECK(!is_private_host("mirror.house", 80) && !is_private_host("a.mirror.house", 3142));
        CHECK(is_private_host("a.house.example", 80) && is_private_host("a.b.house.example", 443));
        CHECK(!is_private_host("house.example", 80) && !is_private_host("a.house.example", 8080));
        CHECK(is_private_host("10.1.2.3", 8080) && is_private_host("0x0a010203", 8080));
        CHECK(!is_private_host("10.1.2.4", 8080));
        CHECK(is_private_host("[fd00::1]", 443) && !is_private_host("[fd00::2]", 443));
        CHECK(egress_is_metadata("link-local fe80::/10") && !egress_is_metadata("private 10.0.0.0/8"));
}

static bool in_range(const char *host)
{
        static char *const named[] = { "*.example.com" };
        struct egress_range ranges[4];
        struct csn_error err;
        struct egress_target target = { .port = 443 };
        CHECK(egress_parse_range("10.1.0.0/15", &ranges[0], &err) == 0 && ranges[0].bits == 15);
        CHECK(egress_parse_range("10.1.2.3", &ranges[1], &err) == 0 && ranges[1].bits == 32);
        CHECK(egress_parse_range("2001:db8::/33", &ranges[2], &err) == 0 && ranges[2].address.len == 16);
        CHECK(egress_parse_range("9.9.9.9/0", &ranges[3], &err) == 0);
        ranges[1].allowed = true;
        const struct egress_rules rules = {
                .public_ = true, .hosts = named, .hosts_n = 1, .ranges = ranges, .ranges_n = 3
        };
        CHECK(egress_host(host, strlen(host), &target, &err) == 0);
        const struct net_address somewhere = { .len = 4, .bytes = { 10, 0, 0, 1 } };
        return egress_in_range(&rules, &target, target.literal ? &target.address : &somewhere);
}

static void ranges_are_compared_by_bits_and_what_is_allowed_goes_first(void)
{
        static const char *const bad[] = { "", "/8", "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/8x", "1.2.3.4/-1", "::/129",
                "example.org", "*", "1.2.3.4/ 8", "[::1" };
        struct egress_range range;
        struct csn_error err;
        CHECK(!in_range("10.0.255.255") && !in_range("10.1.0.0") && in_range("10.2.0.0") && in_range("11.0.0.0") &&
                in_range("10.1.2.3"));
        CHECK(!in_range("[2001:db8:7fff::1]") && in_range("[2001:db8:8000::1]"));
        CHECK(in_range("a.example.com") && !in_range("example.com"));
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                CHECK(egress_parse_range(bad[i], &range, &err) == -CSN_E_INPUT && err.text[0]);
}

/* ---- the parser ---- */

/* What it becomes: the rewritten head, "tunnel HOST:PORT", or NULL for an error. */
static const struct { const char *head, *becomes;
} heads[] = {
        { "CONNECT example.org:443 HTTP/1.1\r\n\r\n", "tunnel example.org:443" },
        { "CONNECT EXAMPLE.org.:443 HTTP/1.0\r\nHost: x\r\nProxy-Authorization: y\r\n\r\n", "tunnel example.org:443" },
        { "CONNECT [::1]:443 HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "tunnel [::1]:443" },
        { "CONNECT 2130706433:80 HTTP/1.1\r\n\r\n", "tunnel 127.0.0.1:80" },
        { "GET http://example.org/a?b=c HTTP/1.1\r\nHost: evil.test\r\nAccept: */*\r\nProxy-Connection: keep-alive\r\n"
          "Connection: keep-alive, X-Own\r\nX-Own: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\n\r\n",
                "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\nConnection: close\r\n\r\n" },
        { "GET http://example.org HTTP/1.0\r\n\r\n",
                "GET / HTTP/1.0\r\nHost: example.org\r\nConnection: close\r\n\r\n" },
        { "GET HTTP://example.org:80?x HTTP/1.1\r\n\r\n",
                "GET /?x HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n" },
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
                bool good = want ? used == (ssize_t)strlen(heads[i].head) && strcmp(got.bytes, want) == 0
                                 : used == -CSN_E_INPUT;
                if (!good)
                        printf("# %zu: %s -> %s\n", i, heads[i].head, used < 0 ? err.text : used ? got.bytes : "more");
                CHECK(good);
                buf_done(&got);
        }
        struct egress_request request;
        struct csn_error err;
        static const char nul[] = "GET http://h/ HTTP/1.1\r\nA: \0\r\n\r\n",
                          early[] = "CONNECT h:443 HTTP/1.1\r\n\r\n\0\1\2";
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
        CHECK(egress_body_take(&trailers, "0\r\n", 3, &err) == 3 &&
                egress_body_take(&trailers, forever, sizeof forever, &err) < 0);
}

int main(void)
{
        RUN(every_border_of_every_range_is_where_it_should_be);
        RUN(no_notation_of_an_address_is_taken_for_a_name);
        RUN(rules_are_hosts_and_perhaps_a_port);
        RUN(rules_allow_what_they_name_and_nothing_else);
        RUN(private_hosts_are_names_and_addresses_with_a_port);
        RUN(ranges_are_compared_by_bits_and_what_is_allowed_goes_first);
        RUN(requests_are_read_strictly);
        RUN(a_request_cut_at_any_byte_is_not_there_yet);
        RUN(heads_have_a_limit_in_bytes_and_in_fields);
        RUN(a_body_ends_where_it_says);
        return tap_done();
}
