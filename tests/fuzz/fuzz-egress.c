/* The head of a request to the proxy and the body behind it, hosts, and rules, from any bytes. */
#include "egress/egress.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool good)
{
        if (!good)
                abort();
}

/* What a program is told holds none of its bytes. */
static void check_text(const struct csn_error *err)
{
        must(err->code == CSN_E_INPUT && err->text[0]);
        for (const char *c = err->text; *c; c++)
                must(*c >= ' ' && *c <= '~');
}

static void check_target(const struct egress_target *target)
{
        for (const char *c = target->host; *c; c++)
                must((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || strchr("-_.[]:", *c));
        must(target->host[0] && target->literal == (target->address.len != 0));
        if (target->literal)
                egress_class(&target->address);
        /* The name of an address is that address again. */
        struct egress_target again = { .port = target->port };
        must(egress_host(target->host, strlen(target->host), &again, NULL) == 0);
        must(again.literal == target->literal && strcmp(again.host, target->host) == 0);
        must(memcmp(&again.address, &target->address, sizeof again.address) == 0);
}

/* All at once and byte by byte, the body ends at the same place. */
static void check_body(const struct egress_body *begin, const char *bytes, size_t len)
{
        struct egress_body whole = *begin, slow = *begin;
        ssize_t taken = egress_body_take(&whole, bytes, len, NULL), n = 0, sum = 0;
        must(taken <= (ssize_t)len);
        for (size_t i = 0; i < len && n >= 0; i++)
                sum += n = egress_body_take(&slow, bytes + i, 1, NULL);
        must((taken < 0) == (n < 0));
        must(taken < 0 || (taken == sum && whole.done == slow.done && whole.left == slow.left));
        must(taken < 0 || whole.done || taken == (ssize_t)len);
}

/* What we forward is read by our own parser as one request to the same host, with the same body. */
static void check_rewritten(const struct egress_request *request, const char *head)
{
        struct buf buf, absolute;
        struct egress_request again;
        buf_init(&buf, 3 * EGRESS_HEAD_MAX);
        must(egress_rewrite(request, head, &buf));
        must(!memmem(buf.bytes, buf.len - 4, "\r\n\r\n", 4) && memcmp(buf.bytes + buf.len - 4, "\r\n\r\n", 4) == 0);
        must(strlen(buf.bytes) == buf.len && !strstr(buf.bytes, "\nProxy-"));
        char *path = strchr(buf.bytes, ' ') + 1;
        buf_init(&absolute, 4 * EGRESS_HEAD_MAX);
        must(buf_add(&absolute, buf.bytes, (size_t)(path - buf.bytes)));
        must(buf_printf(&absolute, "http://%s:%u", request->target.host, request->target.port));
        must(buf_printf(&absolute, "%s", path + (*path == '*' ? 1 : 0)));
        ssize_t used = egress_parse(absolute.bytes, absolute.len, &again, NULL);
        must(used < 0 ? absolute.len > EGRESS_HEAD_MAX || request->headers_n + 2 > EGRESS_HEADERS_MAX
                      : used == (ssize_t)absolute.len);
        if (used > 0)
                must(strcmp(again.target.host, request->target.host) == 0 &&
                        again.target.port == request->target.port && again.body.kind == request->body.kind &&
                        again.body.left == request->body.left && again.old == request->old);
        buf_done(&buf);
        buf_done(&absolute);
}

static void check_request(const char *bytes, size_t len)
{
        struct egress_request request;
        struct csn_error err = { 0 };
        ssize_t used = egress_parse(bytes, len, &request, &err);
        must(used <= (ssize_t)len && used <= EGRESS_HEAD_MAX);
        if (used < 0)
                check_text(&err);
        if (used <= 0)
                return;
        for (ssize_t cut = 0; cut < used; cut += 1 + used / 16)
                must(egress_parse(bytes, (size_t)cut, &request, NULL) == 0);
        must(egress_parse(bytes, (size_t)used, &request, NULL) == used);
        must(request.target.port >= 1 && request.target.port <= 65535);
        check_target(&request.target);
        check_body(&request.body, bytes + used, len - (size_t)used);
        if (request.body.kind != EGRESS_BODY_TUNNEL)
                check_rewritten(&request, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        char *text = mem_copy((const char *)bytes, len);
        struct egress_target target = { .port = 80 };
        struct csn_error err = { 0 };

        check_request(text, len);
        if (egress_host(text, len, &target, &err) == 0)
                check_target(&target);
        else
                check_text(&err);
        struct egress_rules rules = { .hosts = &text, .hosts_n = 1 };
        char why[EGRESS_TEXT_MAX];
        if (target.host[0] && !target.literal && egress_check_rule(text, NULL) == 0)
                must(egress_allows(&rules, &target, why));      /* a host that is a rule allows itself */
        struct egress_body chunks = { .kind = EGRESS_BODY_CHUNKED };
        check_body(&chunks, text, len);
        free(text);
        return 0;
}
