/* The network a sandbox may reach, in E2B's form; see e2b.h. */
#include "front/e2b/request.h"

#include "egress/egress.h"

static bool is_all(const char *text)
{
        return strcmp(text, "0.0.0.0/0") == 0 || strcmp(text, "::/0") == 0;
}

/* An array of texts, or nothing.  Errors: CSN_E_INPUT. */
static int check_list(const json_t *network, const char *name, bool names, struct csn_error *err)
{
        const json_t *list = json_object_get(network, name);
        struct egress_range range;
        struct csn_error why;
        json_t *one;
        size_t i;
        if (!list || json_is_null(list))
                return 0;
        if (!json_is_array(list) || json_array_size(list) > E2B_TEXTS_MAX)
                return err_field(err, name, "%s has to be a list of texts, at most %d", name, E2B_TEXTS_MAX);
        json_array_foreach(list, i, one) {
                const char *text = json_string_value(one);
                if (!text)
                        return err_field(err, name, "%s has to be a list of texts", name);
                if (!is_all(text) && egress_parse_range(text, &range, &why) < 0 &&
                        (!names || egress_check_rule(text, &why) < 0))
                        return err_field(err, name, "%s has \"%.60s\": %s", name, text, why.text);
        }
        return 0;
}

static int check_ports(const json_t *network, const char *name, struct csn_error *err)
{
        const json_t *list = json_object_get(network, name);
        json_t *one;
        size_t i;
        if (!list || json_is_null(list))
                return 0;
        bool good = json_is_array(list);
        json_array_foreach(list, i, one)
                good = good && json_is_integer(one) && json_integer_value(one) >= 1 && json_integer_value(one) <= 65535;
        return good ? 0 : err_field(err, name, "%s has to be a list of ports, which are numbers from 1 to 65535", name);
}

int e2b_network_check(const json_t *network, struct csn_error *err)
{
        static const char *const missing[] = { "rules", "egressProxy" };
        for (size_t i = 0; i < ARRAY_LEN(missing); i++) {
                const json_t *given = json_object_get(network, missing[i]);
                if (given && !json_is_null(given) && (!json_is_object(given) || json_object_size(given)))
                        return err_field(err, missing[i],
                                "%s of a network is not there: requests on their way out are not changed here",
                                missing[i]);
        }
        return check_list(network, "allowOut", true, err) < 0 || check_list(network, "denyOut", false, err) < 0
                ? -err->code
                : check_ports(network, "httpsPorts", err);
}

static void add_ranges(const json_t *list, bool allowed, struct egress_range *ranges, size_t *n)
{
        struct csn_error err;
        json_t *one;
        size_t i;
        json_array_foreach(list, i, one) {
                const char *text = json_string_value(one);
                /* Clients write all of IPv4, and mean IPv6, too. */
                const char *const texts[] = { is_all(text) ? "0.0.0.0/0" : text, is_all(text) ? "::/0" : "" };
                for (size_t k = 0; k < ARRAY_LEN(texts); k++)
                        if (egress_parse_range(texts[k], &ranges[*n], &err) == 0)
                                ranges[(*n)++].allowed = allowed;
        }
}

int e2b_network_apply(struct e2b_sandbox *sandbox, struct csn_error *err)
{
        if (!sandbox->networked)
                return 0;
        const json_t *allow = json_object_get(sandbox->wish.network, "allowOut"),
                     *deny = json_object_get(sandbox->wish.network, "denyOut");
        struct arena arena = { 0 };
        struct egress_range *ranges = arena_alloc(&arena,
                                    2 * (json_array_size(allow) + json_array_size(deny) + 1) * sizeof *ranges),
                            ignored;
        char **hosts = arena_alloc(&arena, (json_array_size(allow) + 1) * sizeof *hosts);
        struct csn_error why;
        json_t *one;
        size_t i, hosts_n = 0, n = 0;
        json_array_foreach(allow, i, one) {
                const char *text = json_string_value(one);
                if (!is_all(text) && egress_parse_range(text, &ignored, &why) < 0)
                        hosts[hosts_n++] = arena_text(&arena, "%s", text);
        }
        add_ranges(allow, true, ranges, &n);
        add_ranges(deny, false, ranges, &n);
        const struct egress_rules rules = { .public_ = sandbox->wish.internet,
                .hosts = hosts,
                .hosts_n = sandbox->wish.internet ? hosts_n : 0,
                .ranges = ranges,
                .ranges_n = n };
        int rc = psandbox_set_network(sandbox->psandbox, &rules, err);
        arena_done(&arena);
        return rc;
}

/* Replaces all members about outgoing traffic; members about incoming traffic stay. */
void e2b_put_network(struct http_request *request)
{
        static const char *const out[] = { "allowOut", "denyOut", "rules", "egressProxy" };
        static const struct e2b_member members[] = { { .name = "allow_internet_access", .kind = E2B_BOOL }, { 0 } };
        struct e2b_sandbox *sandbox = e2b_named(request);
        json_t *body = sandbox ? e2b_body(request, members) : NULL;
        struct csn_error err;
        if (!body)
                return;
        if (e2b_network_check(body, &err) < 0) {
                http_fail(request, &err);
        } else if (sandbox->state != E2B_RUNNING) {
                e2b_error(request, MHD_HTTP_CONFLICT, "sandbox %s is not running", sandbox->id);
        } else {
                json_t *network = sandbox->wish.network ? json_copy(sandbox->wish.network) : json_object();
                for (size_t i = 0; i < ARRAY_LEN(out); i++) {
                        json_object_del(network, out[i]);
                        if (json_object_get(body, out[i]))
                                json_object_set(network, out[i], json_object_get(body, out[i]));
                }
                json_decref(sandbox->wish.network);
                sandbox->wish.network = network;
                sandbox->wish.internet = !json_is_false(json_object_get(body, "allow_internet_access"));
                if (e2b_network_apply(sandbox, &err) < 0)
                        e2b_fail(request, &err);
                else
                        e2b_no_content(request);
        }
        json_decref(body);
}
