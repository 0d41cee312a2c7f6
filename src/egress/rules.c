/*
 * The reachable destinations: hosts, literal addresses in every notation, classes of addresses, rules.
 *
 * A danger lies in parsing a host differently from the resolver or the server.  So a host that ends in a number is an
 * address or an error, as in the URL standard (https://url.spec.whatwg.org/#ends-in-a-number-checker), and every host
 * but a plain ASCII name is an error: no percent signs, no user names, no IDNA.
 *
 * The classes are IANA's special-purpose registries (RFC 6890 and its updates), read strictly: a range not marked
 * "globally reachable" is refused.
 */
#include "egress/egress.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }
static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* ---- literal addresses ---- */

static unsigned hex_value(char c)
{
        return is_digit(c) ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

/* Parse a part of an IPv4 address in C's notation: 10, 012, 0xa.  False: malformed or above max. */
static bool parse_part(const char *text, size_t len, uint64_t max, uint64_t *ret)
{
        unsigned base = 10;
        if (len > 1 && text[0] == '0') {
                base = text[1] == 'x' ? 16 : 8;
                text += base == 16 ? 2 : 1;
                len -= base == 16 ? 2 : 1;
        }
        uint64_t value = 0;
        for (size_t i = 0; i < len; i++) {
                if (!is_hex(text[i]) || hex_value(text[i]) >= base)
                        return false;
                value = value * base + hex_value(text[i]);
                if (value > max)
                        return false;
        }
        *ret = value;
        return len > 0;
}

/*
 * 127.0.0.1, 127.1, 0x7f000001, 0177.0.0.1: one to four parts; the last part fills the remaining bytes (inet_aton(3)).
 */
static bool parse_v4(const char *text, struct net_address *ret)
{
        uint32_t address = 0;
        for (unsigned part = 0; part < 4; part++) {
                const char *dot = strchr(text, '.');
                uint64_t value, max = dot ? 255 : UINT32_MAX >> (8 * part);
                if (!parse_part(text, dot ? (size_t)(dot - text) : strlen(text), max, &value))
                        return false;
                if (!dot) {
                        address |= (uint32_t)value;
                        ret->len = 4;
                        address = htonl(address);
                        memcpy(ret->bytes, &address, 4);
                        return true;
                }
                address |= (uint32_t)value << (24 - 8 * part);
                text = dot + 1;
        }
        return false;
}

static bool ends_in_a_number(const char *host)
{
        const char *dot = strrchr(host, '.');
        const char *last = dot ? dot + 1 : host;
        if (last[0] == '0' && last[1] == 'x') {
                last += 2;
                while (is_hex(*last))
                        last++;
                return !*last;
        }
        if (!*last)
                return false;
        while (is_digit(*last))
                last++;
        return !*last;
}

static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

/* The kernel reaches ::ffff:1.2.3.4 by IPv4, so the address counts as IPv4. */
static void unmap(struct net_address *address)
{
        if (address->len != 16 || memcmp(address->bytes, mapped, sizeof mapped) != 0)
                return;
        memmove(address->bytes, address->bytes + 12, 4);
        address->len = 4;
}

static void print_address(struct egress_target *target)
{
        char text[INET6_ADDRSTRLEN];
        inet_ntop(target->address.len == 4 ? AF_INET : AF_INET6, target->address.bytes, text, sizeof text);
        snprintf(target->host, sizeof target->host, target->address.len == 4 ? "%s" : "[%s]", text);
        target->literal = true;
}

/* Parse the text between brackets.  A zone (fe80::1%eth0) names an interface, so zones are refused. */
static int host_v6(const char *text, size_t len, struct egress_target *ret, struct csn_error *err)
{
        char copy[INET6_ADDRSTRLEN];
        if (memchr(text, '%', len))
                return err_set(err, CSN_E_INPUT, 0, "an address with a zone is not reachable from here");
        if (len >= sizeof copy || memchr(text, 0, len))
                return err_set(err, CSN_E_INPUT, 0, "what is in the brackets is not an IPv6 address");
        memcpy(copy, text, len);
        copy[len] = 0;
        if (inet_pton(AF_INET6, copy, ret->address.bytes) != 1)
                return err_set(err, CSN_E_INPUT, 0, "what is in the brackets is not an IPv6 address");
        ret->address.len = 16;
        unmap(&ret->address);
        print_address(ret);
        return 0;
}

/* ---- hosts ---- */

/* Labels of 1 to 63 letters, digits, hyphens and, as in practice, underscores. */
static bool is_name(const char *host)
{
        size_t label = 0;
        for (const char *c = host; *c; c++) {
                if (*c == '.' ? label == 0 : !is_digit(*c) && !(*c >= 'a' && *c <= 'z') && *c != '-' && *c != '_')
                        return false;
                label = *c == '.' ? 0 : label + 1;
                if (label > 63)
                        return false;
        }
        return label > 0;
}

int egress_host(const char *text, size_t len, struct egress_target *ret, struct csn_error *err)
{
        struct egress_target target = { 0 };
        if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
                if (host_v6(text + 1, len - 2, &target, err) < 0)
                        return -CSN_E_INPUT;
        } else {
                if (len > 0 && text[len - 1] == '.')
                        len--;
                if (len == 0 || len > EGRESS_HOST_MAX)
                        return err_set(err, CSN_E_INPUT, 0, "the host is empty or longer than %d bytes",
                                EGRESS_HOST_MAX);
                for (size_t i = 0; i < len; i++)
                        target.host[i] = lower(text[i]);
                if (strlen(target.host) != len || !is_name(target.host))
                        return err_set(err, CSN_E_INPUT, 0,
                                "the host is not a name of letters, digits, hyphens and dots in ASCII");
                if (ends_in_a_number(target.host)) {
                        if (!parse_v4(target.host, &target.address))
                                return err_set(err, CSN_E_INPUT, 0,
                                        "the host ends in a number and is not an IPv4 address");
                        print_address(&target);
                }
        }
        target.port = ret->port;
        *ret = target;
        return 0;
}

/* ---- classes of addresses ---- */

struct range {
        uint8_t prefix[16];
        unsigned bits;
        const char *class_;
};

static const struct range v4_ranges[] = {
        { { 0 }, 8, "this network 0.0.0.0/8" },
        { { 10 }, 8, "private 10.0.0.0/8" },
        { { 100, 64 }, 10, "shared by carriers 100.64.0.0/10" },
        { { 127 }, 8, "loopback 127.0.0.0/8" },
        /* Azure's virtual machines reach their host at this address, outside all special ranges. */
        { { 168, 63, 129, 16 }, 32, "metadata of a cloud 168.63.129.16" },
        { { 169, 254 }, 16, "link-local and metadata 169.254.0.0/16" },
        { { 172, 16 }, 12, "private 172.16.0.0/12" },
        { { 192, 0, 0 }, 24, "protocol assignments 192.0.0.0/24" },
        { { 192, 0, 2 }, 24, "documentation 192.0.2.0/24" },
        { { 192, 88, 99 }, 24, "6to4 relays 192.88.99.0/24" },
        { { 192, 168 }, 16, "private 192.168.0.0/16" },
        { { 198, 18 }, 15, "benchmarks 198.18.0.0/15" },
        { { 198, 51, 100 }, 24, "documentation 198.51.100.0/24" },
        { { 203, 0, 113 }, 24, "documentation 203.0.113.0/24" },
        { { 224 }, 4, "multicast 224.0.0.0/4" },
        { { 255, 255, 255, 255 }, 32, "broadcast 255.255.255.255" },
        { { 240 }, 4, "reserved 240.0.0.0/4" },
};

static const struct range v6_ranges[] = {
        { { 0 }, 128, "unspecified ::" },
        { { [15] = 1 }, 128, "loopback ::1" },
        { { 0x00, 0x64, 0xff, 0x9b, 0, 1 }, 48, "local translation 64:ff9b:1::/48" },
        { { 0x01, 0x00 }, 64, "discard 100::/64" },
        /* Contains Teredo (2001::/32), handled before. */
        { { 0x20, 0x01 }, 23, "protocol assignments 2001::/23" },
        { { 0x20, 0x01, 0x0d, 0xb8 }, 32, "documentation 2001:db8::/32" },
        { { 0x3f, 0xff }, 20, "documentation 3fff::/20" },
        { { 0xfc }, 7, "private fc00::/7" },
        { { 0xfe, 0x80 }, 10, "link-local fe80::/10" },
        { { 0xfe, 0xc0 }, 10, "site-local fec0::/10" },
        { { 0xff }, 8, "multicast ff00::/8" },
};

/* IPv6 forms with an embedded IPv4 address, which decides the class; `at` is its offset. */
static const struct { struct range range; unsigned at; uint8_t flip; } embedded[] = {
        { { { [10] = 0xff, [11] = 0xff }, 96, "mapped" }, 12, 0 },
        { { { [8] = 0xff, [9] = 0xff }, 96, "translated ::ffff:0:0:0/96 (RFC 2765)" }, 12, 0 },
        { { { 0 }, 96, "compatible" }, 12, 0 },
        { { { 0x00, 0x64, 0xff, 0x9b }, 96, "NAT64" }, 12, 0 },
        { { { 0x20, 0x02 }, 16, "6to4" }, 2, 0 },
        { { { 0x20, 0x01, 0, 0 }, 32, "the server of Teredo" }, 4, 0 },
        { { { 0x20, 0x01, 0, 0 }, 32, "the client of Teredo, every bit flipped" }, 12, 0xff },
};

static bool in_range(const uint8_t *bytes, const struct range *range)
{
        unsigned whole = range->bits / 8, rest = range->bits % 8;
        if (memcmp(bytes, range->prefix, whole) != 0)
                return false;
        return rest == 0 || (bytes[whole] ^ range->prefix[whole]) >> (8 - rest) == 0;
}

static const char *find_range(const uint8_t *bytes, const struct range *ranges, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (in_range(bytes, &ranges[i]))
                        return ranges[i].class_;
        return NULL;
}

static const char *class_v4(const uint8_t *bytes)
{
        return find_range(bytes, v4_ranges, ARRAY_LEN(v4_ranges));
}

/* ISATAP (RFC 5214) embeds an IPv4 address in the interface part of any prefix: ...:[02]00:5efe:1.2.3.4. */
static bool is_isatap(const uint8_t *bytes)
{
        return (bytes[8] & ~2) == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe;
}

static const char *class_v6(const uint8_t *bytes)
{
        bool carries = false;
        const char *class_ = find_range(bytes, v6_ranges, 2);   /* before "compatible", which begins alike */
        for (size_t i = 0; !class_ && i < ARRAY_LEN(embedded); i++)
                if (in_range(bytes, &embedded[i].range)) {
                        uint8_t v4[4];
                        for (unsigned j = 0; j < 4; j++)
                                v4[j] = bytes[embedded[i].at + j] ^ embedded[i].flip;
                        class_ = class_v4(v4);
                        carries = true;
                }
        if (!class_ && !carries)
                class_ = find_range(bytes, v6_ranges, ARRAY_LEN(v6_ranges));
        if (!class_ && is_isatap(bytes))
                class_ = class_v4(bytes + 12);
        if (!class_ && !carries && bytes[0] >> 5 != 1)
                class_ = "reserved: outside 2000::/3";
        return class_;
}

const char *egress_class(const struct net_address *address)
{
        return address->len == 4     ? class_v4(address->bytes)
                : address->len == 16 ? class_v6(address->bytes)
                                     : "no address";
}

/* ---- rules ---- */

struct rule {
        struct egress_target target;
        bool below;                /* "*.": the names below */
        bool any_port;             /* none given: 80 and 443 */
};

static bool parse_port(const char *text, unsigned *ret)
{
        unsigned port = 0;
        size_t len = strlen(text);
        if (len == 0 || len > 5 || text[0] == '0')
                return false;
        for (size_t i = 0; i < len; i++) {
                if (!is_digit(text[i]))
                        return false;
                port = port * 10 + (unsigned)(text[i] - '0');
        }
        *ret = port;
        return port <= 65535;
}

static int parse_rule(const char *text, bool literals, struct rule *ret, struct csn_error *err)
{
        struct rule rule = { .any_port = true };
        struct csn_error why;
        if (strstr(text, "://") || strchr(text, '/'))
                return err_set(err, CSN_E_INPUT, 0,
                        "a host is not a URL: write \"example.org\" or \"example.org:8443\"");
        if (strcmp(text, "*") == 0)
                return err_set(err, CSN_E_INPUT, 0, "\"*\" is every host: use network \"public\"");
        rule.below = strncmp(text, "*.", 2) == 0;
        const char *host = text + (rule.below ? 2 : 0);
        const char *bracket = host[0] == '[' && literals ? strchr(host, ']') : NULL;
        const char *colon = bracket ? strchr(bracket, ':') : host[0] == '[' ? NULL : strchr(host, ':');
        size_t len = colon ? (size_t)(colon - host) : strlen(host);
        if (colon && strchr(colon + 1, ':'))
                return err_set(err, CSN_E_INPUT, 0, "a rule names a host, not an address");
        if (egress_host(host, len, &rule.target, &why) < 0)
                return err_set(err, CSN_E_INPUT, 0, "\"%.60s\": %s", text, why.text);
        if (rule.target.literal && (!literals || rule.below))
                return err_set(err, CSN_E_INPUT, 0, "\"%.60s\": a rule names a host, not an address", text);
        if (rule.below && !strchr(rule.target.host, '.'))
                return err_set(err, CSN_E_INPUT, 0,
                        "\"%.60s\" is too wide: name at least two labels, as in \"*.example.com\"", text);
        if (colon && !parse_port(colon + 1, &rule.target.port))
                return err_set(err, CSN_E_INPUT, 0, "\"%.60s\": what is behind the colon is not a port (1 to 65535)",
                        text);
        rule.any_port = !colon;
        *ret = rule;
        return 0;
}

int egress_check_rule(const char *rule, struct csn_error *err)
{
        struct rule ignored;
        return parse_rule(rule, false, &ignored, err);
}

int egress_check_private(const char *entry, struct csn_error *err)
{
        struct rule ignored;
        return parse_rule(entry, true, &ignored, err);
}

static bool host_matches(const struct rule *rule, const char *host)
{
        if (!rule->below)
                return strcmp(host, rule->target.host) == 0;
        size_t len = strlen(host), tail = strlen(rule->target.host);
        return len > tail + 1 && host[len - tail - 1] == '.' && strcmp(host + len - tail, rule->target.host) == 0;
}

int egress_parse_range(const char *text, struct egress_range *ret, struct csn_error *err)
{
        struct egress_target target;
        struct egress_range range = { .allowed = false };
        const char *slash = strchr(text, '/');
        char host[EGRESS_HOST_MAX + 3], *end;
        size_t len = slash ? (size_t)(slash - text) : strlen(text);
        bool v6 = memchr(text, ':', len);
        snprintf(host, sizeof host, v6 ? "[%.*s]" : "%.*s", (int)min_u64(len, EGRESS_HOST_MAX), text);
        if (egress_host(host, strlen(host), &target, err) < 0 || !target.literal)
                return err_set(err, CSN_E_INPUT, 0, "it is no address and no range as 192.0.2.0/24");
        range.address = target.address;
        range.bits = 8 * range.address.len;
        if (slash) {
                unsigned long bits = strtoul(slash + 1, &end, 10);
                if (!is_digit(slash[1]) || *end || bits > range.bits)
                        return err_set(err, CSN_E_INPUT, 0, "what is behind the slash is no number from 0 to %u",
                                range.bits);
                range.bits = (unsigned)bits;
        }
        *ret = range;
        return 0;
}

static bool is_in(const struct egress_range *range, const struct net_address *address)
{
        unsigned whole = range->bits / 8, rest = range->bits % 8;
        if (range->address.len != address->len || memcmp(range->address.bytes, address->bytes, whole) != 0)
                return false;
        return !rest || !((range->address.bytes[whole] ^ address->bytes[whole]) >> (8 - rest));
}

static bool is_named(const struct egress_rules *rules, const struct egress_target *target)
{
        struct rule rule;
        bool named = false;
        for (size_t i = 0; !target->literal && !named && i < rules->hosts_n; i++)
                named = parse_rule(rules->hosts[i], false, &rule, NULL) == 0 && host_matches(&rule, target->host);
        return named;
}

bool egress_in_range(const struct egress_rules *rules, const struct egress_target *target,
        const struct net_address *address)
{
        bool denied = false;
        if (is_named(rules, target))
                return true;
        for (size_t i = 0; i < rules->ranges_n; i++) {
                bool in = is_in(&rules->ranges[i], address);
                if (in && rules->ranges[i].allowed)
                        return true;
                denied = denied || in;
        }
        return !denied;
}

static bool is_usual(unsigned port)
{
        return port == 80 || port == 443;
}

bool egress_is_private_host(const struct egress_rules *rules, const struct egress_target *target)
{
        for (size_t i = 0; i < rules->private_hosts_n; i++) {
                struct rule rule;
                if (parse_rule(rules->private_hosts[i], true, &rule, NULL) == 0 &&
                        rule.target.literal == target->literal && host_matches(&rule, target->host) &&
                        (rule.any_port ? is_usual(target->port) : rule.target.port == target->port))
                        return true;
        }
        return false;
}

bool egress_is_metadata(const char *class_)
{
        return strncmp(class_, "link-local", 10) == 0 || strncmp(class_, "metadata", 8) == 0;
}

bool egress_allows(const struct egress_rules *rules, const struct egress_target *target,
        char ret_why[static EGRESS_TEXT_MAX])
{
        bool usual = is_usual(target->port), known = rules->public_;
        for (size_t i = 0; !target->literal && i < rules->hosts_n; i++) {
                struct rule rule;
                if (parse_rule(rules->hosts[i], false, &rule, NULL) < 0 || !host_matches(&rule, target->host))
                        continue;
                if (rule.any_port ? usual : rule.target.port == target->port)
                        return true;
                known = true;
        }
        if (rules->public_ && (usual || egress_is_private_host(rules, target)))
                return true;
        if (target->literal && !rules->public_)
                snprintf(ret_why, EGRESS_TEXT_MAX, "%s is an address, and only the hosts named in allow can be reached",
                        target->host);
        else if (!known)
                snprintf(ret_why, EGRESS_TEXT_MAX, "%s is not among the hosts named in allow", target->host);
        else
                snprintf(ret_why, EGRESS_TEXT_MAX,
                        "port %u of %s is not open; ports 80 and 443 are, where allow names no other", target->port,
                        target->host);
        return false;
}
