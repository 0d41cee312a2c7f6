/*
 * The session with an MCP server: start and failure, the version of the protocol, and the list of tools; see mcp.h.
 *
 * mcp.phase is the awaited step.  An answer, a time limit or a lost connection moves the session on; each failure
 * ends the connection, and the next start waits twice as long.
 */
#include "tools/sources/mcp.h"

#include <inttypes.h>
#include <stdio.h>

#define UNSUPPORTED_VERSION (-32022)

static void start(struct mcp *mcp);

/* ---- the state ---- */

static void set_state(struct mcp *mcp, enum tool_state state, const char *problem)
{
        snprintf(mcp->problem, sizeof mcp->problem, "%s", problem ? problem : "");
        mcp->source.state = state;
        mcp->source.problem = problem ? mcp->problem : NULL;
        if (!problem)
                mcp->why[0] = 0;
        tools_changed(&mcp->source);
}

static void set_late(struct mcp *mcp, enum mcp_phase phase, uint64_t us)
{
        mcp->phase = phase;
        loop_timer(mcp->loop, &mcp->slow, us);
}

static void go_down(struct mcp *mcp, const char *why, const char *last)
{
        uint64_t wait_us = MCP_AGAIN_US;
        char text[sizeof mcp->problem];
        snprintf(text, sizeof text, "%s%s%s", why, last[0] ? "; it printed last: " : "", last);
        snprintf(mcp->why, sizeof mcp->why, "%s", why);
        for (unsigned i = 0; i < mcp->failures && wait_us < MCP_AGAIN_US_MAX; i++)
                wait_us *= 2;
        mcp->failures++;
        mcp->phase = MCP_OFF;
        mcp->renewing = false;
        loop_untimer(mcp->loop, &mcp->slow);
        mcp->transport->shut(mcp);
        loop_timer(mcp->loop, &mcp->again, min_u64(wait_us, MCP_AGAIN_US_MAX));
        log_text(LOG_WARN, "MCP server %s: %s; it is tried again in %" PRIu64 " s", mcp->server->name, text,
                min_u64(wait_us, MCP_AGAIN_US_MAX) / 1000000);
        set_state(mcp, TOOLS_DOWN, text);
        mcp_client_end_waiting(mcp, mcp->why);
}

static void fail(struct mcp *mcp, const char *why)
{
        go_down(mcp, why, "");
}

void mcp_lost(struct mcp *mcp, const char *why, const char *last)
{
        if (mcp->phase == MCP_OFF)
                return;
        /* Some legacy servers exit on an unknown request, such as server/discover. */
        if (mcp->phase == MCP_PROBING && mcp->server->era == MCP_ANY && mcp->era == MCP_ANY) {
                mcp->era = MCP_LEGACY;
                mcp->phase = MCP_OFF;
                mcp->transport->shut(mcp);
                mcp_client_end_waiting(mcp, why);
                start(mcp);
                return;
        }
        go_down(mcp, why, last);
}

/* ---- the list ---- */

static void plan_list(struct mcp *mcp)
{
        uint64_t now_us = clock_us(), next_us = mcp->listed_us + MCP_RELIST_US;
        if (!mcp->again.active)
                loop_timer(mcp->loop, &mcp->again, next_us > now_us ? next_us - now_us : MCP_RELIST_US / 10);
}

/* A copy of a text with at most `max` bytes, cut between characters. */
static char *cut(const char *text, size_t max)
{
        size_t len = 0;
        for (size_t step, all = strlen(text);
                len < all && (step = utf8_step(text + len, all - len)) > 0 && len + step <= max;)
                len += step;
        return mem_copy(text, len);
}

/* A text of the object, which is replaced by a cut copy if too long.  Borrowed from the object. */
static const char *text_in(json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));
        if (!text || strlen(text) <= TOOL_TEXT_MAX)
                return text;
        char *shorter = cut(text, TOOL_TEXT_MAX);
        json_object_set_new(object, key, json_string(shorter));
        free(shorter);
        return json_string_value(json_object_get(object, key));
}

static json_t *object_in(json_t *object, const char *key)
{
        json_t *value = json_object_get(object, key);
        return json_is_object(value) ? value : NULL;
}

static bool read_tool(const struct mcp *mcp, json_t *json, struct tool *ret)
{
        const struct server *server = mcp->server;
        const char *name = json_string_value(json_object_get(json, "name"));
        json_t *schema = object_in(json, "inputSchema"), *output = object_in(json, "outputSchema");
        if (!name || !tools_is_name(name) || server_hides(server, name))
                return false;
        if ((schema && json_dumpb(schema, NULL, 0, JSON_COMPACT) > TOOL_SCHEMA_MAX) ||
                (output && json_dumpb(output, NULL, 0, JSON_COMPACT) > TOOL_SCHEMA_MAX)) {
                log_text(LOG_WARN,
                        "MCP server %s: the tool %s is left out, because its schema has more than %llu bytes",
                        server->name, name, TOOL_SCHEMA_MAX);
                return false;
        }
        const char *refusal = schema && mcp->transport->refuses ? mcp->transport->refuses(mcp, schema) : NULL;
        if (refusal) {
                log_text(LOG_WARN, "MCP server %s: the tool %s is left out: %s", server->name, name, refusal);
                return false;
        }
        *ret = (struct tool){ .name = name,
                .title = text_in(json, "title"),
                .description = text_in(json, "description"),
                .input_schema = schema,
                .output_schema = output,
                .annotations = object_in(json, "annotations"),
                .ask = texts_match(&server->ask, name),
                .timeout_ms = server->timeout_ms };
        return true;
}

/* Replace the list of tools by the pages read. */
static void take_list(struct mcp *mcp)
{
        json_t *old = mcp->listed, *seen = json_object(), *json;
        struct tool *old_tools = mcp->tools;
        size_t i, n = json_array_size(mcp->pages), left_out = 0;
        mcp->tools = mem_alloc((n + 1) * sizeof *mcp->tools);
        mcp->tools_n = 0;
        json_array_foreach(mcp->pages, i, json) {
                struct tool *tool = &mcp->tools[mcp->tools_n];
                if (mcp->tools_n < TOOLS_MAX && read_tool(mcp, json, tool) && !json_object_get(seen, tool->name)) {
                        json_object_set_new(seen, tool->name, json_true());
                        mcp->tools_n++;
                } else {
                        left_out++;
                }
        }
        json_decref(seen);
        mcp->listed = mcp->pages;
        mcp->pages = NULL;
        mcp->listed_us = clock_us();
        log_text(LOG_INFO, "MCP server %s: %zu tools, %zu left out", mcp->server->name, mcp->tools_n, left_out);
        mcp->failures = 0;
        set_state(mcp, TOOLS_READY, NULL);
        json_decref(old);
        free(old_tools);
}

/* Send the calls of the ended session again. */
static void send_again(struct mcp *mcp)
{
        struct csn_error err;
        mcp->renewing = false;
        for (struct waiting *waiting = mcp->waiting, *next; waiting; waiting = next) {
                next = waiting->next;
                if (!waiting->again || !waiting->call)
                        continue;
                waiting->again = false;
                json_t *params =
                        json_pack("{s:s, s:O}", "name", waiting->call->name, "arguments", waiting->call->arguments);
                if (mcp_client_send(mcp, waiting, params, &err) < 0) {
                        mcp_unanswered(mcp, waiting, err.text);
                        return;
                }
        }
}

static void be_ready(struct mcp *mcp)
{
        struct csn_error err;
        loop_untimer(mcp->loop, &mcp->slow);
        json_decref(mcp->cursors);
        mcp->cursors = NULL;
        bool first = mcp->phase == MCP_LISTING;
        mcp->phase = MCP_READY;
        take_list(mcp);
        if (mcp->phase != MCP_READY)
                return;
        if (mcp->renewing)
                send_again(mcp);
        if (!first || !mcp->tells_changes || mcp->phase != MCP_READY)
                return;
        if (mcp->era == MCP_LEGACY && mcp->transport->listen)
                mcp->transport->listen(mcp);
        else if (mcp->era == MCP_MODERN &&
                mcp_client_ask(mcp, "subscriptions/listen",
                        json_pack("{s:{s:b}}", "notifications", "toolsListChanged", 1), NULL, &err) < 0)
                log_text(LOG_DEBUG, "MCP server %s: %s", mcp->server->name, err.text);
}

static void ask_page(struct mcp *mcp, const char *cursor)
{
        struct csn_error err;
        if (mcp_client_ask(mcp, "tools/list", cursor ? json_pack("{s:s}", "cursor", cursor) : json_object(), NULL,
                    &err) < 0)
                fail(mcp, err.text);
}

static void begin_list(struct mcp *mcp)
{
        json_decref(mcp->pages);
        json_decref(mcp->cursors);
        mcp->pages = json_array();
        mcp->cursors = json_object();
        mcp->list_bytes = 0;
        loop_timer(mcp->loop, &mcp->slow, MCP_START_US);
        if (mcp->has_tools)
                ask_page(mcp, NULL);
        else
                be_ready(mcp);
}

static void on_page(struct mcp *mcp, json_t *result, size_t len)
{
        json_t *tools = json_object_get(result, "tools"), *tool;
        const char *cursor = json_string_value(json_object_get(result, "nextCursor"));
        size_t i;
        /* A late answer: its list is complete already. */
        if (!mcp->pages)
                return;
        if (!json_is_array(tools)) {
                fail(mcp, "its answer to tools/list has no list of tools");
                return;
        }
        mcp->list_bytes += len;
        json_array_foreach(tools, i, tool) {
                if (json_array_size(mcp->pages) < TOOLS_MAX)
                        json_array_append(mcp->pages, tool);
        }
        if (cursor &&
                (json_array_size(mcp->pages) >= TOOLS_MAX || json_object_size(mcp->cursors) >= MCP_PAGES_MAX ||
                        mcp->list_bytes >= MCP_LIST_MAX || json_object_get(mcp->cursors, cursor))) {
                log_text(LOG_WARN, "MCP server %s: its list of tools does not end; what came until now is used",
                        mcp->server->name);
                cursor = NULL;
        }
        if (cursor) {
                json_object_set_new(mcp->cursors, cursor, json_true());
                ask_page(mcp, cursor);
        } else {
                be_ready(mcp);
        }
}

/* ---- start ---- */

static void note_abilities(struct mcp *mcp, json_t *result)
{
        json_t *tools = object_in(object_in(result, "capabilities"), "tools");
        mcp->has_tools = tools != NULL;
        mcp->tells_changes = json_is_true(json_object_get(tools, "listChanged"));
}

static void probe(struct mcp *mcp)
{
        struct csn_error err;
        set_late(mcp, MCP_PROBING, mcp->server->era == MCP_MODERN ? MCP_START_US : MCP_PROBE_US);
        if (mcp_client_ask(mcp, "server/discover", NULL, NULL, &err) < 0)
                fail(mcp, err.text);
}

static void greet(struct mcp *mcp)
{
        struct csn_error err;
        mcp->era = MCP_LEGACY;
        set_late(mcp, MCP_GREETING, MCP_START_US);
        json_t *params = json_pack("{s:s, s:{}, s:o}", "protocolVersion", MCP_LEGACY_VERSION, "capabilities",
                "clientInfo", mcp_client_info());
        if (mcp_client_ask(mcp, "initialize", params, NULL, &err) < 0)
                fail(mcp, err.text);
}

static bool has_version(json_t *versions)
{
        size_t i;
        json_t *one;
        json_array_foreach(versions, i, one) {
                if (json_is_string(one) && strcmp(json_string_value(one), MCP_VERSION) == 0)
                        return true;
        }
        return false;
}

static void on_discovered(struct mcp *mcp, json_t *result)
{
        bool ours = has_version(json_object_get(result, "supportedVersions"));
        if (!ours && mcp->server->era == MCP_ANY) {
                greet(mcp);
                return;
        }
        if (!ours) {
                fail(mcp, "it does not speak " MCP_VERSION);
                return;
        }
        mcp->era = MCP_MODERN;
        note_abilities(mcp, result);
        set_late(mcp, MCP_LISTING, MCP_START_US);
        begin_list(mcp);
}

static void on_greeted(struct mcp *mcp, json_t *result)
{
        static const char *const known[] = { MCP_LEGACY_VERSION, "2025-06-18", "2025-03-26", "2024-11-05" };
        const char *version = json_string_value(json_object_get(result, "protocolVersion"));
        bool found = false;
        for (size_t i = 0; version && i < ARRAY_LEN(known); i++)
                found |= strcmp(known[i], version) == 0;
        if (!found) {
                fail(mcp, "it speaks no version of the protocol that is known here");
                return;
        }
        snprintf(mcp->version, sizeof mcp->version, "%s", version);
        note_abilities(mcp, result);
        set_late(mcp, MCP_LISTING, MCP_START_US);
        mcp_client_tell(mcp, rpc_notification("notifications/initialized", NULL));
        if (mcp->phase == MCP_LISTING)
                begin_list(mcp);
}

static void start(struct mcp *mcp)
{
        struct csn_error err;
        mcp->version[0] = 0;
        mcp->asked_twice = false;
        set_late(mcp, MCP_GREETING, MCP_START_US);
        set_state(mcp, TOOLS_STARTING, NULL);
        if (mcp->transport->open(mcp, &err) < 0)
                fail(mcp, err.text);
        else if (mcp->era == MCP_LEGACY)
                greet(mcp);
        else
                probe(mcp);
}

static void on_again(struct timer *timer)
{
        struct mcp *mcp = timer->owner;
        if (mcp->phase == MCP_OFF)
                start(mcp);
        else if (mcp->phase == MCP_READY && mcp->pages)
                plan_list(mcp);            /* the list being read may be out of date */
        else if (mcp->phase == MCP_READY)
                begin_list(mcp);
}

static void on_slow(struct timer *timer)
{
        struct mcp *mcp = timer->owner;
        if (mcp->phase == MCP_PROBING && mcp->server->era == MCP_ANY) {
                while (mcp->waiting)
                        mcp_client_drop(mcp, mcp->waiting);
                greet(mcp);
        } else {
                fail(mcp, mcp->phase >= MCP_LISTING ? "it does not answer to tools/list" : "it does not answer");
        }
}

void mcp_renew(struct mcp *mcp, struct waiting *waiting)
{
        if (!waiting->call || waiting->again || mcp->phase == MCP_OFF) {
                mcp_unanswered(mcp, waiting, "the server does not know its own session");
                return;
        }
        waiting->again = true;
        if (mcp->renewing)
                return;
        mcp->renewing = true;
        if (mcp->phase == MCP_READY)
                greet(mcp);
}

/* ---- answers ---- */

void mcp_unanswered(struct mcp *mcp, struct waiting *waiting, const char *why)
{
        struct tool_call *call = waiting->call;
        const char *method = waiting->method;
        char text[400];
        mcp_client_drop(mcp, waiting);
        snprintf(text, sizeof text, "the server %s: %s", mcp->server->name, why);
        if (call)
                mcp_client_fail_call(call, text);
        else if (strcmp(method, "server/discover") == 0 && mcp->server->era == MCP_ANY)
                greet(mcp);
        else if (strcmp(method, "subscriptions/listen") != 0)
                fail(mcp, why);
}

/* Probe once more if the error names MCP_VERSION as supported.  False: the server may be of the legacy era. */
static bool probe_again(struct mcp *mcp, const struct rpc *rpc)
{
        if (rpc->code != UNSUPPORTED_VERSION || mcp->asked_twice ||
                !has_version(json_object_get(rpc->data, "supported")))
                return false;
        mcp->asked_twice = true;
        probe(mcp);
        return true;
}

void mcp_client_take_error(struct mcp *mcp, const char *method, const struct rpc *rpc, const char *text)
{
        if (strcmp(method, "server/discover") == 0 && probe_again(mcp, rpc))
                return;
        if (strcmp(method, "server/discover") == 0 && mcp->server->era == MCP_ANY)
                greet(mcp);
        else if (strcmp(method, "subscriptions/listen") != 0)
                fail(mcp, text);
}

/* subscriptions/listen needs no step: its answer says that the subscription has ended. */
void mcp_client_take_result(struct mcp *mcp, const char *method, json_t *result, size_t len)
{
        if (strcmp(method, "server/discover") == 0)
                on_discovered(mcp, result);
        else if (strcmp(method, "initialize") == 0)
                on_greeted(mcp, result);
        else if (strcmp(method, "tools/list") == 0)
                on_page(mcp, result, len);
}

void mcp_client_list_changed(struct mcp *mcp)
{
        if (mcp->phase == MCP_READY)
                plan_list(mcp);
}

/* ---- begin and end ---- */

void mcp_client_init(struct mcp *mcp)
{
        mcp->slow = (struct timer){ .fired = on_slow, .owner = mcp };
        mcp->again = (struct timer){ .fired = on_again, .owner = mcp };
        loop_timer(mcp->loop, &mcp->again, 0);
}

void mcp_client_done(struct mcp *mcp)
{
        mcp->phase = MCP_OFF;
        while (mcp->waiting)
                mcp_client_drop(mcp, mcp->waiting);
        mcp->transport->shut(mcp);
        loop_untimer(mcp->loop, &mcp->slow);
        loop_untimer(mcp->loop, &mcp->again);
        json_decref(mcp->pages);
        json_decref(mcp->cursors);
        json_decref(mcp->listed);
        free(mcp->tools);
}
