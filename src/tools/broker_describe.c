/* Answers of a broker without a call: the list of tools, the description of a tool, and errors in a request. */
#include "tools/tools_private.h"

#define LIST_MAX (8 * MIB)                 /* of the answer to `list` */

static void answer_json(struct tool_socket_call *from, json_t *json)
{
        char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
        static const char none[] = "{\"ok\":false,\"error\":\"out of bounds\",\"tool\":\"\"}";
        json_decref(json);
        if (text && strlen(text) <= LIST_MAX && tool_socket_has_room(from, strlen(text)))
                tool_socket_answer(from, text, strlen(text));
        else
                tool_socket_answer(from, none, strlen(none));
        free(text);
}

void broker_answer_error(const struct broker *broker, struct tool_socket_call *from, const char *error)
{
        answer_json(from,
                json_pack("{s:b, s:s, s:s, s:b, s:b}", "ok", 0, "error", error, "tool", "", "decode",
                        broker->request->decode, "raise", broker->request->raise));
}

void broker_answer_unread(const struct broker *broker, struct tool_socket_call *from, const char *message, size_t len,
        const json_error_t *why)
{
        struct arena arena = { 0 };
        const char *text;
        if (!why) {
                text = arena_text(&arena, "The arguments cannot be passed on: they have more than %d values and names",
                        TOOL_PARTS_MAX);
        } else if (json_error_code(why) == json_error_numeric_overflow) {
                size_t end = min_u64((uint64_t)why->position, len), at = end;
                while (at && message[at - 1] && strchr("+-.0123456789eE", message[at - 1]))
                        at--;
                text = arena_text(&arena,
                        "The arguments cannot be passed on: %.*s is a number of more than 64 bits; give it as a text",
                        (int)min_u64(end - at, 100), message + at);
        } else {
                text = arena_text(&arena, "The arguments cannot be passed on: %s", why->text);
        }
        broker_answer_error(broker, from, model_utf8(&arena, text, strlen(text), &len));
        arena_done(&arena);
}

static void set_text(json_t *json, const char *name, const char *text)
{
        struct arena arena = { 0 };
        size_t len;
        if (text) {
                const char *good = model_utf8(&arena, text, strnlen(text, TOOL_TEXT_MAX), &len);
                json_object_set_new(json, name, json_stringn(good, len));
        }
        arena_done(&arena);
}

static json_t *describe(const struct granted *one, bool whole, struct arena *arena)
{
        const struct tool *tool = one->tool;
        json_t *json = json_pack("{s:s, s:s, s:s}", "name", grant_name(one, arena), "server", one->source->server,
                "tool", tool->name);
        if (!whole)
                return json;
        set_text(json, "title", tool->title);
        set_text(json, "description", tool->description ? tool->description : "");
        json_object_set_new(json, "parameters",
                tool->input_schema ? json_incref(tool->input_schema) : json_pack("{s:s}", "type", "object"));
        if (tool->output_schema)
                json_object_set(json, "returns", tool->output_schema);
        if (tool->annotations)
                json_object_set(json, "annotations", tool->annotations);
        json_object_set_new(json, "ask", json_boolean(tool->ask));
        return json;
}

void broker_list(struct broker *broker, struct tool_socket_call *from)
{
        const struct tools_request *request = broker->request;
        struct arena arena = { 0 };
        size_t n;
        const struct granted *all = grant_all(broker, &n);
        json_t *tools = json_array();
        for (size_t i = 0; i < n; i++)
                json_array_append_new(tools, describe(&all[i], false, &arena));
        answer_json(from,
                json_pack("{s:b, s:o, s:b, s:b, s:I, s:I}", "ok", 1, "tools", tools, "decode", request->decode, "raise",
                        request->raise, "payload_bytes", (json_int_t)request->payload_bytes, "calls_left",
                        (json_int_t)(request->calls - broker->calls)));
        arena_done(&arena);
}

void broker_info(struct broker *broker, struct tool_socket_call *from, json_t *request)
{
        struct arena arena = { 0 };
        struct granted one;
        char *error = NULL;
        if (grant_find(broker, json_string_value(json_object_get(request, "server")),
                    json_string_value(json_object_get(request, "tool")), &arena, &one, &error))
                answer_json(from, json_pack("{s:b, s:o}", "ok", 1, "result", describe(&one, true, &arena)));
        else
                broker_answer_error(broker, from, error);
        arena_done(&arena);
}

json_t *tools_describe(struct tools *tools, const struct tools_request *request, bool all)
{
        static char any[] = "*", *const every[] = { any };
        struct tools_request whole = *request;
        struct broker broker = { .tools = tools, .request = &whole };
        struct arena arena = { 0 };
        size_t n;
        if (all && !whole.allow_n) {
                whole.allow = (char **)(uintptr_t)every;
                whole.allow_n = ARRAY_LEN(every);
        }
        const struct granted *list = grant_all(&broker, &n);
        json_t *json = json_array();
        for (size_t i = 0; i < n; i++)
                json_array_append_new(json, describe(&list[i], true, &arena));
        grant_forget(&broker);
        arena_done(&arena);
        return json;
}
