/* The tools granted to a broker, and their names for the program. */
#include "tools/tools_private.h"

#include <inttypes.h>
#include <stdio.h>

#define NAMES_TOLD 50              /* names listed in the error for an unknown name */
#define WARNING_BYTES 200          /* bytes of names after which a warning takes no more */
/* CPU time of the warning at the end of each run; names not checked by then are left out */
#define WARNING_MS_MAX 5
#define TOOLS_AT_ONCE 64           /* tools between two reads of the clock, a system call each */
/* CPU time for all patterns and all tools; later tools are not in the list */
#define LISTING_MS_MAX 200

/*
 * Both texts have at most a few hundred bytes.  Backtracking goes to the last * only, so the work is at most the
 * product of the lengths.
 */
static bool glob(const char *pattern, const char *text)
{
        const char *star = NULL, *from = NULL;
        while (*text) {
                if (*pattern == '*') {
                        star = ++pattern;
                        from = text;
                } else if (*pattern == *text) {
                        pattern++;
                        text++;
                } else if (star) {
                        pattern = star;
                        text = ++from;
                } else {
                        return false;
                }
        }
        while (*pattern == '*')
                pattern++;
        return *pattern == 0;
}

bool grant_matches(const char *pattern, const char *server, const char *tool)
{
        char qualified[2 * TOOL_NAME_MAX + 2];
        if (!strchr(pattern, '.'))
                return glob(pattern, tool);
        snprintf(qualified, sizeof qualified, "%s.%s", server, tool);
        return glob(pattern, qualified);
}

bool grant_check_pattern(const char *pattern)
{
        return pattern[0] &&
                strspn(pattern, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./*") ==
                strlen(pattern);
}

/* Does `wide` match every name matched by `narrow`?  Compares the texts: a * in `narrow` needs a * in `wide`. */
static bool covers(const char *wide, const char *narrow)
{
        return strcmp(wide, "*") == 0 || (!strchr(wide, '.') == !strchr(narrow, '.') && glob(wide, narrow));
}

/* The first pattern of `narrow` not covered by `wide`, or NULL. */
static const char *uncovered(char *const *wide, size_t wide_n, char *const *narrow, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                size_t at = 0;
                while (at < wide_n && !covers(wide[at], narrow[i]))
                        at++;
                if (at == wide_n)
                        return narrow[i];
        }
        return NULL;
}

static int widens(const char *field, struct csn_error *err)
{
        snprintf(err->field, sizeof err->field, "/tools/%s", field);
        return -err->code;
}

/*
 * If the profile allows no tools, all tools are the client's own, and only numbers set in the profile bind the request.
 */
static int numbers_narrow(const struct tools_request *given, const struct tools_request *granted, const char *profile,
        struct csn_error *err)
{
        for (size_t i = 0; i < object_tools_request.n; i++) {
                const struct field *field = &object_tools_request.fields[i];
                bool set = granted->present >> i & 1;
                if (field->kind != KIND_NUM || !(given->present >> i & 1) || (!set && !granted->allow_n))
                        continue;
                uint64_t asked = *(const uint64_t *)(const void *)((const char *)given + field->at);
                uint64_t most = set ? *(const uint64_t *)(const void *)((const char *)granted + field->at) : field->def;
                if (asked <= most)
                        continue;
                err_set(err, CSN_E_DENIED, 0,
                        "tools.%s is %" PRIu64 "; the profile %.60s allows at most %" PRIu64
                        ". For more this key needs the scope tools",
                        field->name, asked, profile, most);
                return widens(field->name, err);
        }
        return 0;
}

int tools_check_narrow(const struct tools_request *given, const struct tools_request *granted, const char *profile,
        struct csn_error *err)
{
        static const char left_out[] =
                "tools.%s leaves out \"%.100s\" of the profile %.60s: name that as well. To leave it out this key needs the scope tools";
        const char *allow = uncovered(granted->allow, granted->allow_n, given->allow, given->allow_n);
        const char *deny = HAS(given, tools_request, deny)
                ? uncovered(given->deny, given->deny_n, granted->deny, granted->deny_n)
                : NULL;
        const char *ask = HAS(given, tools_request, ask)
                ? uncovered(given->ask, given->ask_n, granted->ask, granted->ask_n)
                : NULL;
        if (allow) {
                err_set(err, CSN_E_DENIED, 0,
                        "tools.allow has \"%.100s\", which the profile %.60s does not allow. To name it this key needs the scope tools",
                        allow, profile);
                return widens("allow", err);
        }
        if (deny || ask) {
                err_set(err, CSN_E_DENIED, 0, left_out, deny ? "deny" : "ask", deny ? deny : ask, profile);
                return widens(deny ? "deny" : "ask", err);
        }
        return numbers_narrow(given, granted, profile, err);
}

static bool is_listed(char *const *patterns, size_t n, const char *server, const char *tool)
{
        for (size_t i = 0; i < n; i++)
                if (grant_matches(patterns[i], server, tool))
                        return true;
        return false;
}

/* Server names have no dots, so the pattern up to its first dot or star is a prefix of the server's name. */
bool grant_concerns(char *const *patterns, size_t n, const char *server)
{
        for (size_t i = 0; i < n; i++) {
                size_t len = strcspn(patterns[i], ".*");
                if (!strchr(patterns[i], '.') ||
                        (strncmp(patterns[i], server, len) == 0 && (patterns[i][len] == '*' || !server[len])))
                        return true;
        }
        return false;
}

/* The client's own tools and recorded tools need no entry in `allow`. */
static bool is_granted(const struct broker *broker, const struct tool_source *source, const struct tool *tool)
{
        const struct tools_request *request = broker->request;
        bool own = source == broker->client || broker->replay;
        if (!tools_is_name(tool->name) || is_listed(request->deny, request->deny_n, source->server, tool->name))
                return false;
        return own || is_listed(request->allow, request->allow_n, source->server, tool->name);
}

/* The sources of a broker, one after another. */
static struct tool_source *next_source(const struct broker *broker, const struct tool_source *source)
{
        if (broker->replay)
                return source ? source->next : replay_sources(broker->replay);
        if (!source)
                return broker->client ? broker->client : broker->tools->sources;
        return source == broker->client ? broker->tools->sources : source->next;
}

/*
 * Also the tools of an unavailable source, so that another server's tool of the same name does not take over the name.
 */
static const struct tool *list_of(struct tool_source *source, size_t *ret_n)
{
        return source->kind->list(source, ret_n);
}

static int by_name(const void *a, const void *b)
{
        const struct granted *one = a, *other = b;
        int order = strcmp(one->tool->name, other->tool->name);
        return order ? order : strcmp(one->source->server, other->source->server);
}

/* By the names shown to code. */
static int by_shown_name(const void *a, const void *b)
{
        const struct granted *const both[2] = { a, b };
        char names[2][2 * TOOL_NAME_MAX + 2];
        for (int i = 0; i < 2; i++)
                snprintf(names[i], sizeof names[i], "%s%s%s", both[i]->shared ? both[i]->source->server : "",
                        both[i]->shared ? "." : "", both[i]->tool->name);
        return strcmp(names[0], names[1]);
}

const struct granted *grant_all(struct broker *broker, size_t *ret_n)
{
        size_t max = 0, n = 0, count;
        uint64_t until_us = clock_work_us() + LISTING_MS_MAX * 1000;
        if (broker->granted) {
                *ret_n = broker->granted_n;
                return broker->granted;
        }
        for (struct tool_source *source = next_source(broker, NULL); source; source = next_source(broker, source)) {
                list_of(source, &count);
                max += count;
        }
        struct granted *all = mem_alloc((max + 1) * sizeof *all);
        for (struct tool_source *source = next_source(broker, NULL); source; source = next_source(broker, source)) {
                const struct tool *list = list_of(source, &count);
                for (size_t i = 0; i < count && n < max && clock_work_us() <= until_us; i++)
                        if (is_granted(broker, source, &list[i]))
                                all[n++] = (struct granted){ .source = source, .tool = &list[i] };
        }
        qsort(all, n, sizeof *all, by_name);
        for (size_t i = 0; i + 1 < n; i++)
                if (strcmp(all[i].tool->name, all[i + 1].tool->name) == 0)
                        all[i].shared = all[i + 1].shared = true;
        size_t ready = 0;
        for (size_t i = 0; i < n; i++)
                if (all[i].source->state == TOOLS_READY)
                        all[ready++] = all[i];
        qsort(all, ready, sizeof *all, by_shown_name);
        broker->granted = all;
        *ret_n = broker->granted_n = ready;
        return all;
}

/* Does the pattern match no tool?  False in doubt: a source with a fitting name is not ready, or time is up. */
static bool is_for_nothing(const struct broker *broker, char *const *pattern, uint64_t until_us)
{
        size_t count;
        for (struct tool_source *source = next_source(broker, NULL); source; source = next_source(broker, source)) {
                const struct tool *list = list_of(source, &count);
                if (source->state != TOOLS_READY && grant_concerns(pattern, 1, source->server))
                        return false;
                for (size_t i = 0; i < count; i++)
                        if ((i % TOOLS_AT_ONCE == 0 && clock_work_us() > until_us) ||
                                grant_matches(*pattern, source->server, list[i].name))
                                return false;
        }
        return true;
}

void grant_warn(const struct broker *broker, struct run *run)
{
        const struct tools_request *request = broker->request;
        uint64_t until_us = clock_work_us() + WARNING_MS_MAX * 1000;
        struct buf text;
        size_t n = 0;
        buf_init(&text, 64 * KIB);
        for (size_t i = 0; i < request->allow_n && !broker->replay && text.len < WARNING_BYTES; i++)
                if (is_for_nothing(broker, &request->allow[i], until_us))
                        buf_printf(&text, "%s\"%.100s\"", n++ ? ", " : "", request->allow[i]);
        if (n > 0)
                run_warn(run, "tool_not_found", "no tool has these names in tools.allow: %s", text.bytes);
        buf_done(&text);
}

void grant_forget(struct broker *broker)
{
        free(broker->granted);
        broker->granted = NULL;
}

char *grant_name(const struct granted *one, struct arena *arena)
{
        return one->shared ? arena_text(arena, "%s.%s", one->source->server, one->tool->name)
                           : arena_text(arena, "%s", one->tool->name);
}

/* `name` is TOOL or SERVER.TOOL; the tool's name itself may have dots. */
static bool is_called(const struct tool_source *source, const struct tool *tool, const char *server, const char *name)
{
        size_t len = strlen(source->server);
        if (server)
                return strcmp(server, source->server) == 0 && strcmp(name, tool->name) == 0;
        return strcmp(name, tool->name) == 0 ||
                (strncmp(name, source->server, len) == 0 && name[len] == '.' &&
                        strcmp(name + len + 1, tool->name) == 0);
}

/* Has another server a granted tool of this name? */
static bool is_shared(const struct broker *broker, const struct granted *one)
{
        size_t count;
        for (struct tool_source *source = next_source(broker, NULL); source; source = next_source(broker, source)) {
                const struct tool *list = list_of(source, &count);
                for (size_t i = 0; i < count; i++)
                        if (source != one->source && strcmp(list[i].name, one->tool->name) == 0 &&
                                is_granted(broker, source, &list[i]))
                                return true;
        }
        return false;
}

static char *not_found(struct broker *broker, const char *server, const char *name, struct arena *arena)
{
        struct buf text;
        size_t n;
        const struct granted *all = grant_all(broker, &n);
        buf_init(&text, 64 * KIB);
        buf_printf(&text, "Tool '%.100s%s%.200s' not found. Available: ", server ? server : "", server ? "." : "",
                name);
        for (size_t i = 0; i < n && i < NAMES_TOLD; i++)
                buf_printf(&text, "%s%s", i ? ", " : "", grant_name(&all[i], arena));
        if (n > NAMES_TOLD)
                buf_printf(&text, " and %zu more", n - NAMES_TOLD);
        if (n == 0)
                buf_printf(&text, "none");
        for (const struct tool_source *source = next_source(broker, NULL); source; source = next_source(broker, source))
                if (source->state == TOOLS_DOWN)
                        buf_printf(&text, "; the server %s cannot be used now", source->server);
        char *error = arena_copy(arena, text.bytes, text.len);
        buf_done(&text);
        return error;
}

bool grant_find(struct broker *broker, const char *server, const char *name, struct arena *arena, struct granted *ret,
        char **ret_error)
{
        char *servers = NULL;
        size_t found = 0, count;
        for (struct tool_source *source = next_source(broker, NULL); source; source = next_source(broker, source)) {
                const struct tool *list = list_of(source, &count);
                for (size_t i = 0; i < count; i++) {
                        if (!is_called(source, &list[i], server, name) || !is_granted(broker, source, &list[i]))
                                continue;
                        *ret = (struct granted){ .source = source, .tool = &list[i] };
                        servers = servers ? arena_text(arena, "%.2000s, %s.%s", servers, source->server, list[i].name)
                                          : arena_text(arena, "%s.%s", source->server, list[i].name);
                        found++;
                }
        }
        if (found == 1 && ret->source->state == TOOLS_READY) {
                ret->shared = is_shared(broker, ret);
                return true;
        }
        *ret_error = found > 1 ? arena_text(arena, "Tool '%.200s' is on several servers. Name one: %s", name, servers)
                               : not_found(broker, server, name, arena);
        return false;
}
