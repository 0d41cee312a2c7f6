/* A call of a tool defined by the configuration: its arguments, its output, its end. */
#include "tools/sources/defined.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <strings.h>

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
                block = json_pack("{s:s, s:s, s:s%}", "type", "image", "data", text, "mimeType", mime,
                        strcspn(mime, "; "));
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
                return strlen(*ret) == json_string_length(value)
                        ? 0
                        : err_set(err, CSN_E_INPUT, 0, "the argument %.60s has a NUL character; leave it out", name);
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

int act_arguments(const struct act *act, const char *name, struct arena *arena, struct launch_texts *ret,
        struct csn_error *err)
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
