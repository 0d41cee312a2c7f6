/* Tools that the configuration defines, as a source; see defined.h. */
#include "tools/sources/defined.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <strings.h>

struct definitions {
        struct tool_source source;
        struct sources *sources;
        const struct server *server;
        struct tool *tools;
        struct act *acts;
};

static void act_free(struct act *act)
{
        struct definitions *own = act->definitions;
        for (struct act **at = &own->acts; *at; at = &(*at)->next)
                if (*at == act) {
                        *at = act->next;
                        break;
                }
        act->kind->end(act);
        loop_untimer(act->sources->loop, &act->over);
        json_decref(act->content);
        json_decref(act->structured);
        free(act);
}

static void on_over(struct timer *timer)
{
        struct act *act = timer->owner;
        struct tool_call *call = act->call;
        const struct tool_result result = { .content = act->error[0] ? NULL : act->content, .structured = act->error[0] ? NULL : act->structured,
                                            .is_error = act->is_error || act->error[0], .error = act->error[0] ? act->error : NULL };
        act->call = NULL;
        if (call) {
                call->handle = NULL;
                call->done(call, &result);
        }
        act_free(act);
}

void act_finish(struct act *act, const char *error)
{
        if (error)
                snprintf(act->error, sizeof act->error, "%s", error);
        loop_timer(act->sources->loop, &act->over, 0);
}

static char *base64(const char *bytes, size_t len)
{
        unsigned char *text = mem_alloc((len + 2) / 3 * 4 + 1);
        EVP_EncodeBlock(text, (const unsigned char *)bytes, (int)len);
        return (char *)text;
}

bool act_add(struct act *act, const char *bytes, size_t len, const char *mime)
{
        json_t *block = NULL;
        if (strncasecmp(mime, "image/", 6) == 0 && utf8_valid(mime, strlen(mime))) {
                char *text = base64(bytes, len);
                block = json_pack("{s:s, s:s, s:s%}", "type", "image", "data", text, "mimeType", mime, strcspn(mime, "; "));
                free(text);
        } else if (utf8_valid(bytes, len)) {
                block = json_pack("{s:s, s:o}", "type", "text", "text", json_stringn(bytes, len));
        }
        if (!block)
                return false;
        if (!act->content)
                act->content = json_array();
        json_array_append_new(act->content, block);
        return true;
}

static int text_of(json_t *value, const char *name, struct arena *arena, const char **ret, struct csn_error *err)
{
        if (json_is_string(value)) {
                *ret = json_string_value(value);
                return strlen(*ret) == json_string_length(value) ? 0 : err_set(err, CSN_E_INPUT, 0, "the argument %.60s has a NUL character; leave it out", name);
        }
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        if (!text)
                return err_set(err, CSN_E_INPUT, 0, "the argument %.60s cannot be written as JSON", name);
        *ret = arena_text(arena, "%s", text);
        free(text);
        return 0;
}

int act_argument(const struct act *act, const char *name, struct arena *arena, const char **ret, struct csn_error *err)
{
        json_t *value = json_object_get(act->call->arguments, name);
        *ret = NULL;
        return value && !json_is_null(value) ? text_of(value, name, arena, ret, err) : 0;
}

int act_arguments(const struct act *act, const char *name, struct arena *arena, struct launch_texts *ret, struct csn_error *err)
{
        json_t *value = json_object_get(act->call->arguments, name), *one;
        const char *text;
        size_t i;
        *ret = (struct launch_texts){ 0 };
        if (!value || json_is_null(value))
                return 0;
        ret->texts = arena_alloc(arena, (json_array_size(value) + 2) * sizeof *ret->texts);
        if (!json_is_array(value)) {
                if (text_of(value, name, arena, &text, err) < 0)
                        return -err->code;
                ret->texts[ret->n++] = (char *)(uintptr_t)text;
        }
        json_array_foreach(value, i, one) {
                if (text_of(one, name, arena, &text, err) < 0)
                        return -err->code;
                ret->texts[ret->n++] = (char *)(uintptr_t)text;
        }
        return 0;
}

/* ---- as a source ---- */

static const struct tool *defined_list(struct tool_source *source, size_t *ret_n)
{
        const struct definitions *own = (const struct definitions *)source;
        *ret_n = own->server->defined_n;
        return own->tools;
}

static int defined_call(struct tool_source *source, struct tool_call *call, struct csn_error *err)
{
        struct definitions *own = (struct definitions *)source;
        const struct defined *tool = NULL;
        for (size_t i = 0; i < own->server->defined_n; i++)
                if (strcmp(own->server->defined[i].name, call->name) == 0)
                        tool = &own->server->defined[i];
        if (!tool)
                return err_set(err, CSN_E_SYSTEM, 0, "the server %s has no tool of that name any more", own->server->name);
        const struct act_kind *kind = tool->url ? &act_endpoint : &act_command;
        struct act *act = mem_alloc(kind->size);
        *act = (struct act){ .next = own->acts, .definitions = own, .sources = own->sources, .tool = tool, .call = call, .kind = kind };
        act->over = (struct timer){ .fired = on_over, .owner = act };
        own->acts = act;
        if (kind->begin(act, err) < 0) {
                act_free(act);
                return -err->code;
        }
        call->handle = act;
        return 0;
}

static void defined_cancel(struct tool_source *source, struct tool_call *call)
{
        (void)source;
        struct act *act = call->handle;
        call->handle = NULL;
        if (act)
                act_free(act);
}

static void defined_close(struct tool_source *source)
{
        struct definitions *own = (struct definitions *)source;
        for (struct act *act = own->acts, *next; act; act = next) {
                next = act->next;
                act_free(act);
        }
        free(own->tools);
        free(own);
}

static const struct tool_source_kind defined_kind = { .list = defined_list, .call = defined_call, .cancel = defined_cancel, .close = defined_close };

int defined_new(struct sources *sources, const struct server *server, struct tool_source **ret, struct csn_error *err)
{
        struct definitions *own = mem_alloc(sizeof *own);
        (void)err;
        *own = (struct definitions){ .source = { .kind = &defined_kind, .server = server->name, .state = TOOLS_READY }, .sources = sources, .server = server };
        own->tools = mem_alloc(server->defined_n * sizeof *own->tools);
        for (size_t i = 0; i < server->defined_n; i++) {
                const struct defined *tool = &server->defined[i];
                own->tools[i] = (struct tool){ .name = tool->name, .title = tool->title, .description = tool->description, .input_schema = tool->schema,
                                               .ask = tool->ask, .timeout_ms = tool->timeout_ms };
        }
        *ret = &own->source;
        return 0;
}
