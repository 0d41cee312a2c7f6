/* The client of the Model Context Protocol; see mcp.h. */
#include "tools/sources/mcp.h"

#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#define UNSUPPORTED_VERSION (-32022)

static void start(struct mcp *mcp);

/* ---- requests ---- */

static json_t *who_we_are(void)
{
        return json_pack("{s:s, s:s, s:s}", "name", "caisson", "title", "Caisson", "version", VERSION);
}

/* What each request of the modern era says of itself. */
static json_t *with_meta(const struct mcp *mcp, json_t *params)
{
        json_t *meta = json_object_get(params, "_meta");
        if (mcp->era == MCP_LEGACY)
                return params;
        if (!params)
                params = json_object();
        if (!meta) {
                meta = json_object();
                json_object_set_new(params, "_meta", meta);
        }
        json_object_set_new(meta, "io.modelcontextprotocol/protocolVersion", json_string(MCP_VERSION));
        json_object_set_new(meta, "io.modelcontextprotocol/clientInfo", who_we_are());
        json_object_set_new(meta, "io.modelcontextprotocol/clientCapabilities", json_object());
        return params;
}

struct waiting *mcp_find(const struct mcp *mcp, int64_t id)
{
        struct waiting *waiting = mcp->waiting;
        while (waiting && waiting->id != id)
                waiting = waiting->next;
        return waiting;
}

/* It waits no more; the caller frees it. */
static void take_out(struct mcp *mcp, struct waiting *waiting)
{
        for (struct waiting **at = &mcp->waiting; *at; at = &(*at)->next)
                if (*at == waiting) {
                        *at = waiting->next;
                        mcp->waiting_n--;
                        break;
                }
}

static void drop(struct mcp *mcp, struct waiting *waiting)
{
        take_out(mcp, waiting);
        mcp->transport->forget(mcp, waiting);
        free(waiting);
}

static int request_of(struct mcp *mcp, struct waiting *waiting, json_t *params, struct csn_error *err)
{
        json_t *id = json_integer(waiting->id);
        json_t *message = rpc_call(id, waiting->method, with_meta(mcp, params));
        json_decref(id);
        return mcp->transport->send(mcp, message, waiting, err);
}

/* params are taken.  Where it fails nothing waits. */
static int ask(struct mcp *mcp, const char *method, json_t *params, struct tool_call *call, struct csn_error *err)
{
        if (mcp->waiting_n >= MCP_WAITING_MAX) {
                json_decref(params);
                return err_set(err, CSN_E_BUSY, 0, "the server %s has %d calls that it has not answered; try again later", mcp->server->name, MCP_WAITING_MAX);
        }
        struct waiting *waiting = mem_alloc(sizeof *waiting);
        *waiting = (struct waiting){ .next = mcp->waiting, .id = ++mcp->last_id, .method = method, .call = call };
        mcp->waiting = waiting;
        mcp->waiting_n++;
        if (call) {
                call->handle = waiting;
                json_object_set_new(params, "_meta", json_pack("{s:I}", "progressToken", (json_int_t)waiting->id));
        }
        int rc = request_of(mcp, waiting, params, err);
        if (rc < 0)
                drop(mcp, waiting);
        return rc;
}

/* It does not matter if it cannot be sent: then the connection is lost, and that is told. */
static void tell(struct mcp *mcp, json_t *message)
{
        struct csn_error err;
        if (mcp->transport->send(mcp, message, NULL, &err) < 0)
                log_text(LOG_DEBUG, "MCP server %s: %s", mcp->server->name, err.text);
}

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

static void finish(struct tool_call *call, const char *error)
{
        const struct tool_result result = { .is_error = true, .error = error };
        call->handle = NULL;
        call->done(call, &result);
}

/* Calls end; what we asked for ourselves is forgotten. */
static void end_waiting(struct mcp *mcp, const char *why)
{
        char text[400];
        snprintf(text, sizeof text, "the server %s cannot be used: %s", mcp->server->name, why);
        while (mcp->waiting) {
                struct tool_call *call = mcp->waiting->call;
                drop(mcp, mcp->waiting);
                if (call)
                        finish(call, text);
        }
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
        log_text(LOG_WARN, "MCP server %s: %s; it is tried again in %" PRIu64 " s", mcp->server->name, text, min_u64(wait_us, MCP_AGAIN_US_MAX) / 1000000);
        set_state(mcp, TOOLS_DOWN, text);
        end_waiting(mcp, mcp->why);
}

static void fail(struct mcp *mcp, const char *why)
{
        go_down(mcp, why, "");
}

void mcp_lost(struct mcp *mcp, const char *why, const char *last)
{
        if (mcp->phase == MCP_OFF)
                return;
        /* Some servers of the legacy era end when they hear what they do not know. */
        if (mcp->phase == MCP_PROBING && mcp->server->era == MCP_ANY && mcp->era == MCP_ANY) {
                mcp->era = MCP_LEGACY;
                mcp->phase = MCP_OFF;
                mcp->transport->shut(mcp);
                end_waiting(mcp, why);
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

/* A text of the server's, of at most so many bytes and cut at a character. */
static char *cut(const char *text, size_t max)
{
        size_t len = 0;
        for (size_t step, all = strlen(text); len < all && (step = utf8_step(text + len, all - len)) > 0 && len + step <= max;)
                len += step;
        return mem_copy(text, len);
}

/* Put a text that is too long in its place; the object keeps it. */
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
        if ((schema && json_dumpb(schema, NULL, 0, JSON_COMPACT) > TOOL_SCHEMA_MAX) || (output && json_dumpb(output, NULL, 0, JSON_COMPACT) > TOOL_SCHEMA_MAX)) {
                log_text(LOG_WARN, "MCP server %s: the tool %s is left out, because its schema has more than %llu bytes", server->name, name, TOOL_SCHEMA_MAX);
                return false;
        }
        const char *refusal = schema && mcp->transport->refuses ? mcp->transport->refuses(mcp, schema) : NULL;
        if (refusal) {
                log_text(LOG_WARN, "MCP server %s: the tool %s is left out: %s", server->name, name, refusal);
                return false;
        }
        *ret = (struct tool){ .name = name, .title = text_in(json, "title"), .description = text_in(json, "description"), .input_schema = schema,
                              .output_schema = output, .annotations = object_in(json, "annotations"), .ask = texts_match(&server->ask, name),
                              .timeout_ms = server->timeout_ms };
        return true;
}

/* From the pages to what list() gives. */
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

/* Requests that a session that ended left behind. */
static void send_again(struct mcp *mcp)
{
        struct csn_error err;
        mcp->renewing = false;
        for (struct waiting *waiting = mcp->waiting, *next; waiting; waiting = next) {
                next = waiting->next;
                if (!waiting->again || !waiting->call)
                        continue;
                waiting->again = false;
                json_t *params = json_pack("{s:s, s:O}", "name", waiting->call->name, "arguments", waiting->call->arguments);
                if (request_of(mcp, waiting, params, &err) < 0) {
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
        else if (mcp->era == MCP_MODERN && ask(mcp, "subscriptions/listen", json_pack("{s:{s:b}}", "notifications", "toolsListChanged", 1), NULL, &err) < 0)
                log_text(LOG_DEBUG, "MCP server %s: %s", mcp->server->name, err.text);
}

static void ask_page(struct mcp *mcp, const char *cursor)
{
        struct csn_error err;
        if (ask(mcp, "tools/list", cursor ? json_pack("{s:s}", "cursor", cursor) : json_object(), NULL, &err) < 0)
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
        /* To an older request, whose list has been read to its end. */
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
        if (cursor && (json_array_size(mcp->pages) >= TOOLS_MAX || json_object_size(mcp->cursors) >= MCP_PAGES_MAX || mcp->list_bytes >= MCP_LIST_MAX ||
                       json_object_get(mcp->cursors, cursor))) {
                log_text(LOG_WARN, "MCP server %s: its list of tools does not end; what came until now is used", mcp->server->name);
                cursor = NULL;
        }
        if (cursor) {
                json_object_set_new(mcp->cursors, cursor, json_true());
                ask_page(mcp, cursor);
        } else {
                be_ready(mcp);
        }
}

/* ---- the beginning ---- */

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
        if (ask(mcp, "server/discover", NULL, NULL, &err) < 0)
                fail(mcp, err.text);
}

static void greet(struct mcp *mcp)
{
        struct csn_error err;
        mcp->era = MCP_LEGACY;
        set_late(mcp, MCP_GREETING, MCP_START_US);
        json_t *params = json_pack("{s:s, s:{}, s:o}", "protocolVersion", MCP_LEGACY_VERSION, "capabilities", "clientInfo", who_we_are());
        if (ask(mcp, "initialize", params, NULL, &err) < 0)
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
        tell(mcp, rpc_notification("notifications/initialized", NULL));
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
                plan_list(mcp);            /* one is on its way, and may be old already */
        else if (mcp->phase == MCP_READY)
                begin_list(mcp);
}

static void on_slow(struct timer *timer)
{
        struct mcp *mcp = timer->owner;
        if (mcp->phase == MCP_PROBING && mcp->server->era == MCP_ANY) {
                while (mcp->waiting)
                        drop(mcp, mcp->waiting);
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

/* Blocks are objects with a type; nothing else is handed on. */
static bool is_content(const json_t *content)
{
        size_t i;
        json_t *block;
        if (!json_is_array(content))
                return false;
        json_array_foreach(content, i, block) {
                if (!json_is_string(json_object_get(block, "type")))
                        return false;
        }
        return true;
}

static void on_result_of_call(struct mcp *mcp, struct tool_call *call, json_t *json)
{
        const char *type = json_string_value(json_object_get(json, "resultType"));
        struct tool_result result = { .content = json_object_get(json, "content"), .structured = json_object_get(json, "structuredContent"),
                                      .is_error = json_is_true(json_object_get(json, "isError")) };
        char text[300];
        if (type && strcmp(type, "complete") != 0) {
                snprintf(text, sizeof text, "the server %s asks for something besides (%.40s), and nobody is there to be asked", mcp->server->name, type);
                finish(call, text);
                return;
        }
        if (json_is_null(result.structured))
                result.structured = NULL;
        if ((result.content && !is_content(result.content)) || (!result.content && !result.structured)) {
                snprintf(text, sizeof text, "the server %s answers with what is no result of a tool", mcp->server->name);
                finish(call, text);
                return;
        }
        call->handle = NULL;
        call->done(call, &result);
}

static void on_result(struct mcp *mcp, const char *method, struct tool_call *call, json_t *result, size_t len)
{
        if (call)
                on_result_of_call(mcp, call, result);
        else if (strcmp(method, "server/discover") == 0)
                on_discovered(mcp, result);
        else if (strcmp(method, "initialize") == 0)
                on_greeted(mcp, result);
        else if (strcmp(method, "tools/list") == 0)
                on_page(mcp, result, len);
        /* subscriptions/listen: it told changes and does so no more. */
}

/* It knows the modern era: the same once more, if it says so itself, and else the other era. */
static bool probe_again(struct mcp *mcp, const struct rpc *rpc)
{
        if (rpc->code != UNSUPPORTED_VERSION || mcp->asked_twice || !has_version(json_object_get(rpc->data, "supported")))
                return false;
        mcp->asked_twice = true;
        probe(mcp);
        return true;
}

static void on_error(struct mcp *mcp, const char *method, struct tool_call *call, const struct rpc *rpc)
{
        const int64_t code = rpc->code;
        const char *message = rpc->message;
        char text[600], *shown = cut(message ? message : "", 400);
        snprintf(text, sizeof text, "the server %s: %s (%" PRId64 ")", mcp->server->name, shown[0] ? shown : "an error", code);
        free(shown);
        if (call)
                finish(call, text);
        else if (strcmp(method, "server/discover") == 0 && probe_again(mcp, rpc))
                return;
        else if (strcmp(method, "server/discover") == 0 && mcp->server->era == MCP_ANY)
                greet(mcp);
        else if (strcmp(method, "subscriptions/listen") != 0)
                fail(mcp, text);
}

void mcp_unanswered(struct mcp *mcp, struct waiting *waiting, const char *why)
{
        struct tool_call *call = waiting->call;
        const char *method = waiting->method;
        char text[400];
        drop(mcp, waiting);
        snprintf(text, sizeof text, "the server %s: %s", mcp->server->name, why);
        if (call)
                finish(call, text);
        else if (strcmp(method, "server/discover") == 0 && mcp->server->era == MCP_ANY)
                greet(mcp);
        else if (strcmp(method, "subscriptions/listen") != 0)
                fail(mcp, why);
}

/* The server asks us.  There is nobody whom it could ask for a text, an answer or its folders. */
static void on_request(struct mcp *mcp, const struct rpc *rpc)
{
        bool ping = strcmp(rpc->method, "ping") == 0;
        tell(mcp, ping ? rpc_result(rpc->id, json_object()) : rpc_error(rpc->id, RPC_METHOD_NOT_FOUND, "this client offers nothing of that kind", NULL));
}

static void on_progress(struct mcp *mcp, const json_t *params)
{
        const json_t *token = json_object_get(params, "progressToken"), *progress = json_object_get(params, "progress");
        struct waiting *waiting = json_is_integer(token) ? mcp_find(mcp, json_integer_value(token)) : NULL;
        if (waiting && waiting->call && waiting->call->progress && json_is_number(progress))
                waiting->call->progress(waiting->call, json_number_value(progress), json_number_value(json_object_get(params, "total")),
                                        json_string_value(json_object_get(params, "message")));
}

static void on_notification(struct mcp *mcp, const struct rpc *rpc)
{
        if (strcmp(rpc->method, "notifications/progress") == 0)
                on_progress(mcp, rpc->params);
        else if (strcmp(rpc->method, "notifications/tools/list_changed") == 0 && mcp->phase == MCP_READY)
                plan_list(mcp);
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static size_t skip_blanks(const char *text, size_t len, size_t at)
{
        while (at < len && (text[at] == ' ' || text[at] == '\t'))
                at++;
        return at;
}

/*
 * The id of an answer that cannot be read, so that its call need not wait for one that never comes; -1: it has none.  Half a
 * pair of surrogates or 5,000 levels leave the outermost object as it is.
 */
static int64_t id_of_unreadable(const char *text, size_t len)
{
        int64_t id = -1;
        size_t depth = 0;
        for (size_t at = 0; at < len; at++) {
                if (text[at] == '{' || text[at] == '[')
                        depth++;
                else if ((text[at] == '}' || text[at] == ']') && depth)
                        depth--;
                if (text[at] != '"')
                        continue;
                const char *name = text + at + 1;
                for (at++; at < len && text[at] != '"'; at++)
                        at += text[at] == '\\';
                size_t next = skip_blanks(text, len, at + 1);
                if (depth != 1 || next >= len || text[next] != ':')
                        continue;
                if (strncmp(name, "method\"", 7) == 0)
                        return -1;
                if (strncmp(name, "id\"", 3) != 0)
                        continue;
                next = skip_blanks(text, len, next + 1);
                for (id = next < len && is_digit(text[next]) ? 0 : -1; next < len && is_digit(text[next]) && id < INT32_MAX; next++)
                        id = id * 10 + text[next] - '0';
        }
        return id;
}

bool mcp_message(struct mcp *mcp, const char *text, size_t len)
{
        struct rpc rpc = { 0 };
        struct csn_error err;
        if (rpc_read(text, len, &rpc, &err) < 0) {
                struct waiting *meant = mcp_find(mcp, rpc.json ? json_is_integer(rpc.id) ? json_integer_value(rpc.id) : -1 : id_of_unreadable(text, len));
                log_text(LOG_WARN, "MCP server %s says what is no message: %s", mcp->server->name, err.text);
                rpc_done(&rpc);
                if (meant)
                        mcp_unanswered(mcp, meant, err.text);
                return false;
        }
        if (rpc.kind == RPC_REQUEST) {
                on_request(mcp, &rpc);
        } else if (rpc.kind == RPC_NOTIFICATION) {
                on_notification(mcp, &rpc);
        } else {
                struct waiting *waiting = json_is_integer(rpc.id) ? mcp_find(mcp, json_integer_value(rpc.id)) : NULL;
                if (waiting) {
                        struct tool_call *call = waiting->call;
                        const char *method = waiting->method;
                        drop(mcp, waiting);
                        if (rpc.kind == RPC_RESULT)
                                on_result(mcp, method, call, rpc.result, len);
                        else
                                on_error(mcp, method, call, &rpc);
                }
        }
        rpc_done(&rpc);
        return true;
}

/* ---- as a source ---- */

static struct mcp *mcp_of(struct tool_source *source)
{
        return (struct mcp *)source;
}

static const struct tool *mcp_list(struct tool_source *source, size_t *ret_n)
{
        const struct mcp *mcp = mcp_of(source);
        *ret_n = mcp->tools_n;
        return mcp->tools;
}

static int mcp_call(struct tool_source *source, struct tool_call *call, struct csn_error *err)
{
        struct mcp *mcp = mcp_of(source);
        if (mcp->phase != MCP_READY)
                return err_set(err, mcp->phase == MCP_OFF ? CSN_E_SYSTEM : CSN_E_BUSY, 0, "the server %s cannot be used now: %s", mcp->server->name,
                               mcp->why[0] ? mcp->why : "it is starting");
        if (server_hides(mcp->server, call->name))
                return err_set(err, CSN_E_DENIED, 0, "the tool %.128s of the server %s is not allowed", call->name, mcp->server->name);
        json_t *params = json_pack("{s:s, s:O}", "name", call->name, "arguments", call->arguments);
        return ask(mcp, "tools/call", params, call, err);
}

static void mcp_cancel(struct tool_source *source, struct tool_call *call)
{
        struct mcp *mcp = mcp_of(source);
        struct waiting *waiting = call->handle;
        if (!waiting)
                return;
        int64_t id = waiting->id;
        call->handle = NULL;
        take_out(mcp, waiting);
        bool told = mcp->transport->forget(mcp, waiting);
        free(waiting);
        if (!told && mcp->phase == MCP_READY)
                tell(mcp, rpc_notification("notifications/cancelled", with_meta(mcp, json_pack("{s:I, s:s}", "requestId", (json_int_t)id, "reason", "nobody waits for it any more"))));
}

static void mcp_close(struct tool_source *source)
{
        struct mcp *mcp = mcp_of(source);
        mcp->phase = MCP_OFF;
        while (mcp->waiting)
                drop(mcp, mcp->waiting);
        mcp->transport->shut(mcp);
        loop_untimer(mcp->loop, &mcp->slow);
        loop_untimer(mcp->loop, &mcp->again);
        json_decref(mcp->pages);
        json_decref(mcp->cursors);
        json_decref(mcp->listed);
        free(mcp->tools);
        mcp->transport->done(mcp);
        free(mcp);
}

static const struct tool_source_kind mcp_kind = { .list = mcp_list, .call = mcp_call, .cancel = mcp_cancel, .close = mcp_close };

struct tool_source *mcp_new(struct sources *sources, const struct server *server, const struct mcp_transport *transport)
{
        struct mcp *mcp = mem_alloc(sizeof *mcp);
        *mcp = (struct mcp){ .source = { .kind = &mcp_kind, .server = server->name, .state = TOOLS_STARTING }, .sources = sources, .server = server,
                             .loop = sources->loop, .transport = transport, .era = server->era };
        mcp->slow = (struct timer){ .fired = on_slow, .owner = mcp };
        mcp->again = (struct timer){ .fired = on_again, .owner = mcp };
        /* From the loop: then it is somebody's source, who hears of it. */
        loop_timer(mcp->loop, &mcp->again, 0);
        return &mcp->source;
}
