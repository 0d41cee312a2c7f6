/* Constant texts: escapes (ECMA-262 12.9.4), and the methods by which programs put texts together. */
#include "policy/javascript/javascript.h"

#include <stdio.h>

/* ---- escapes ---- */

static int hex(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

static bool digits(const char *text, size_t *at, size_t end, size_t n, uint32_t *ret)
{
        uint32_t code = 0;
        if (*at + n > end)
                return false;
        for (size_t i = 0; i < n; i++) {
                if (hex(text[*at + i]) < 0)
                        return false;
                code = code * 16 + (uint32_t)hex(text[*at + i]);
        }
        *at += n;
        *ret = code;
        return true;
}

/* The code behind \u; *at is behind the u. */
static bool unicode(const char *text, size_t *at, size_t end, uint32_t *ret)
{
        uint32_t code = 0, low;
        if (*at < end && text[*at] == '{') {
                for ((*at)++; *at < end && text[*at] != '}'; (*at)++) {
                        if (hex(text[*at]) < 0 || code > 0x10ffff)
                                return false;
                        code = code * 16 + (uint32_t)hex(text[*at]);
                }
                if (*at == end)
                        return false;
                (*at)++;
        } else if (!digits(text, at, end, 4, &code)) {
                return false;
        }
        size_t next = *at + 2;
        if (code >= 0xd800 && code < 0xdc00 && *at + 6 <= end && text[*at] == '\\' && text[*at + 1] == 'u' &&
                digits(text, &next, end, 4, &low) && low >= 0xdc00 && low < 0xe000) {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                *at = next;
        }
        *ret = code;
        return true;
}

/* Read an escape; *at is behind the backslash, and moves behind the rest. */
static bool escape(const char *text, size_t *at, size_t end, struct buf *buf)
{
        static const char plain[] = "n\nr\rt\tb\bf\fv\v";
        char c = text[(*at)++];
        uint32_t code = 0;
        if (c == 'x' && !digits(text, at, end, 2, &code))
                return false;
        if (c == 'u' && !unicode(text, at, end, &code))
                return false;
        if (c == 'x' || c == 'u')
                return unicode_put(buf, code) || buf_add(buf, "\xef\xbf\xbd", 3);
        if (c >= '0' && c <= '7') {
                code = (uint32_t)(c - '0');
                for (int i = 0; i < 2 && *at < end && text[*at] >= '0' && text[*at] <= '7' && code * 8 < 256; i++)
                        code = code * 8 + (uint32_t)(text[(*at)++] - '0');
                return unicode_put(buf, code);
        }
        for (size_t i = 0; i + 1 < sizeof plain; i += 2)
                if (c == plain[i])
                        return buf_add(buf, plain + i + 1, 1);
        /* An escaped line end has no character. */
        if (c == '\n')
                return true;
        if (c == '\xe2' && end - *at >= 2 && text[*at] == '\x80' &&
                (text[*at + 1] == '\xa8' || text[*at + 1] == '\xa9')) {
                *at += 2;
                return true;
        }
        return buf_add(buf, &c, 1);
}

bool js_unescape(const char *text, size_t start, size_t end, bool identifier, struct buf *buf)
{
        while (start < end) {
                const char *slash = memchr(text + start, '\\', end - start);
                size_t until = slash ? (size_t)(slash - text) : end;
                if (until > start && !buf_add(buf, text + start, until - start))
                        return false;
                start = until + 1;
                if (!slash)
                        break;
                if (start >= end || (identifier && text[start] != 'u') || !escape(text, &start, end, buf))
                        return false;
        }
        return true;
}

/* ---- as texts ---- */

/* A single value, not open, without alternatives. */
static bool is_alone(const struct js_value *value)
{
        return value && !value->open && !value->next;
}

static bool add_string(struct buf *buf, const struct js_value *value)
{
        switch (value->what) {
        case JSV_TEXT: case JSV_BYTES: return buf_add(buf, value->text, value->len);
        case JSV_NUMBER: return buf_printf(buf, "%lld", (long long)value->number);
        case JSV_PLAIN: return value->text && buf_add(buf, value->text, value->len);
        case JSV_METHOD:
                return value->text &&
                        buf_printf(buf, "function %.*s() { [native code] }", (int)value->len, value->text);
        case JSV_OBJECT: return buf_printf(buf, "[object Object]");
        default: return false;
        }
}

static struct js_value *text_of(struct js *js, struct buf *buf, bool good)
{
        struct js_value *value = good && js_spend(js, buf->len)
                ? js_value_text(js, JSV_TEXT, arena_copy(js->arena, buf->bytes ? buf->bytes : "", buf->len), buf->len)
                : NULL;
        buf_done(buf);
        return value;
}

static struct js_value *joined(struct js *js, const struct js_value *list, const char *between, size_t len)
{
        struct buf buf;
        bool good = true;
        buf_init(&buf, JS_TEXT_MAX);
        for (size_t i = 0; i < list->n && good; i++) {
                const struct js_value *item = list->items[i];
                bool nothing = is_alone(item) && item->what == JSV_PLAIN && item->text &&
                               (js_is("undefined", item->text, item->len) || js_is("null", item->text, item->len));
                /* [[]] is ""; deeper lists count as unknown. */
                bool empty = is_alone(item) && item->what == JSV_LIST && item->n == 0;
                good = is_alone(item) && (i == 0 || buf_add(&buf, between, len)) &&
                        (nothing || empty || add_string(&buf, item));
        }
        return text_of(js, &buf, good);
}

struct js_value *js_string_of(struct js *js, struct js_value *value)
{
        struct buf buf;
        if (!is_alone(value))
                return NULL;
        if (value->what == JSV_TEXT)
                return value;
        if (value->what == JSV_LIST)
                return joined(js, value, ",", 1);
        buf_init(&buf, JS_TEXT_MAX);
        bool good = add_string(&buf, value);
        return text_of(js, &buf, good);
}

/* ---- decoding ---- */

static int base64(char c)
{
        if (c >= 'A' && c <= 'Z')
                return c - 'A';
        if (c >= 'a' && c <= 'z')
                return c - 'a' + 26;
        if (c >= '0' && c <= '9')
                return c - '0' + 52;
        return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

struct js_value *js_decoded(struct js *js, const struct js_value *text, const char *encoding, size_t len)
{
        struct buf buf;
        buf_init(&buf, JS_TEXT_MAX);
        bool good = true;
        if (js_is("base64", encoding, len) || js_is("base64url", encoding, len)) {
                uint32_t bits = 0;
                int n = 0;
                for (size_t i = 0; i < text->len && text->text[i] != '='; i++) {
                        int six = base64(text->text[i]);
                        if (six < 0)
                                continue;
                        bits = bits << 6 | (uint32_t)six;
                        if ((n += 6) >= 8) {
                                char byte = (char)(bits >> (n -= 8));
                                good = good && buf_add(&buf, &byte, 1);
                        }
                }
        } else if (js_is("hex", encoding, len)) {
                for (size_t i = 0; i + 1 < text->len && hex(text->text[i]) >= 0 && hex(text->text[i + 1]) >= 0;
                        i += 2) {
                        char byte = (char)(hex(text->text[i]) * 16 + hex(text->text[i + 1]));
                        good = good && buf_add(&buf, &byte, 1);
                }
        } else {
                good = buf_add(&buf, text->text, text->len);
        }
        struct js_value *value = text_of(js, &buf, good);
        if (value)
                value->what = JSV_BYTES;
        return value;
}

struct js_value *js_unpercent(struct js *js, const struct js_value *text)
{
        struct buf buf;
        bool good = true;
        buf_init(&buf, JS_TEXT_MAX);
        for (size_t i = 0; i < text->len && good; i++) {
                size_t at = i + 1;
                uint32_t code;
                char byte = text->text[i];
                if (byte == '%' && digits(text->text, &at, text->len, 2, &code))
                        byte = (char)code, i = at - 1;
                good = buf_add(&buf, &byte, 1);
        }
        return text_of(js, &buf, good);
}

struct js_value *js_from_codes(struct js *js, struct js_value **args, size_t n)
{
        struct buf buf;
        bool good = true;
        buf_init(&buf, JS_TEXT_MAX);
        for (size_t i = 0; i < n && good; i++) {
                struct js_value *code = js_only(args[i], JSV_NUMBER);
                good = code && code->number >= 0 && unicode_put(&buf, (uint32_t)code->number & 0x1fffff);
        }
        return text_of(js, &buf, good);
}

/* ---- methods ---- */

static bool is_ascii(const struct js_value *text)
{
        for (size_t i = 0; i < text->len; i++)
                if ((unsigned char)text->text[i] >= 0x80)
                        return false;
        return true;
}

static struct js_value *copy(struct js *js, const struct js_value *of, size_t from, size_t to)
{
        if (to > from && !js_spend(js, to - from))
                return NULL;
        if (of->what == JSV_LIST)
                return js_value_list(js, of->items + from, to > from ? to - from : 0);
        return js_value_text(js, JSV_TEXT, arena_copy(js->arena, of->text + from, to > from ? to - from : 0),
                to > from ? to - from : 0);
}

/* slice, substring, substr, at, charAt: a part given by two numbers. */
static struct js_value *part(struct js *js, const struct js_value *of, const char *name, size_t len,
        struct js_value **args, size_t n)
{
        const struct js_value *first = n ? js_only(args[0], JSV_NUMBER) : NULL,
                              *second = n > 1 ? js_only(args[1], JSV_NUMBER) : NULL;
        int64_t size = (int64_t)(of->what == JSV_LIST ? of->n : of->len);
        if ((n && !first) || (n > 1 && !second) || (of->what != JSV_LIST && !is_ascii(of)))
                return NULL;
        int64_t from = first ? first->number : 0, to = second ? second->number : size;
        bool from_end = js_is("slice", name, len) || js_is("at", name, len) || js_is("substr", name, len);
        from = from_end && from < 0 ? from + size : from;
        to = js_is("slice", name, len) && to < 0 ? to + size : to;
        if (js_is("substr", name, len) && second)
                to = second->number > size ? size : from + second->number;
        if (js_is("at", name, len) || js_is("charAt", name, len)) {
                if (from < 0 || from >= size)
                        return NULL;
                return of->what == JSV_LIST ? of->items[from] : copy(js, of, (size_t)from, (size_t)from + 1);
        }
        from = from < 0 ? 0 : from > size ? size : from;
        to = to < 0 ? 0 : to > size ? size : to;
        if (js_is("substring", name, len) && from > to) {
                int64_t swap = from;
                from = to, to = swap;
        }
        return copy(js, of, (size_t)from, (size_t)(to > from ? to : from));
}

static struct js_value *split(struct js *js, const struct js_value *of, const struct js_value *by)
{
        struct js_value *items[JS_ITEMS_MAX];
        size_t n = 0, from = 0;
        if (!by || (by->len == 0 && !is_ascii(of)))
                return NULL;
        while (from <= of->len && n < JS_ITEMS_MAX) {
                const char *hit =
                        by->len ? memmem(of->text + from, of->len - from, by->text, by->len) : of->text + from + 1;
                size_t end = hit && hit <= of->text + of->len ? (size_t)(hit - of->text) : of->len;
                if (!by->len && from == of->len)
                        break;
                items[n++] = copy(js, of, from, end);
                if (!hit)
                        break;
                from = end + by->len;
        }
        return n < JS_ITEMS_MAX ? js_value_list(js, items, n) : NULL;
}

static struct js_value *replaced(struct js *js, const struct js_value *of, const struct js_value *what,
        const struct js_value *with, bool all)
{
        struct buf buf;
        size_t from = 0;
        bool good = true;
        if (!what || !with || !what->len || memchr(with->text, '$', with->len))
                return NULL;
        buf_init(&buf, JS_TEXT_MAX);
        for (bool again = true; again && good;) {
                const char *hit = memmem(of->text + from, of->len - from, what->text, what->len);
                size_t end = hit ? (size_t)(hit - of->text) : of->len;
                good = buf_add(&buf, of->text + from, end - from) && (!hit || buf_add(&buf, with->text, with->len));
                from = hit ? end + what->len : end;
                again = hit && all;
        }
        good = good && buf_add(&buf, of->text + from, of->len - from);
        return text_of(js, &buf, good);
}

static struct js_value *cased(struct js *js, const struct js_value *of, bool upper)
{
        char *text = arena_copy(js->arena, of->text, of->len);
        for (size_t i = 0; i < of->len; i++)
                if (upper ? text[i] >= 'a' && text[i] <= 'z' : text[i] >= 'A' && text[i] <= 'Z')
                        text[i] = (char)(text[i] ^ 0x20);
        return js_value_text(js, JSV_TEXT, text, of->len);
}

static struct js_value *repeated(struct js *js, const struct js_value *of, const struct js_value *times)
{
        struct buf buf;
        bool good = times && times->number >= 0;
        buf_init(&buf, JS_TEXT_MAX);
        for (int64_t i = 0; good && i < times->number && of->len; i++)
                good = buf_add(&buf, of->text, of->len);
        return text_of(js, &buf, good);
}

static struct js_value *trimmed(struct js *js, const struct js_value *of)
{
        size_t from = 0, to = of->len;
        while (from < to && strchr(" \t\n\v\f\r", of->text[from]) && of->text[from])
                from++;
        while (to > from && strchr(" \t\n\v\f\r", of->text[to - 1]) && of->text[to - 1])
                to--;
        return copy(js, of, from, to);
}

static struct js_value *code_at(struct js *js, const struct js_value *of, struct js_value **args, size_t n)
{
        const struct js_value *at = n ? js_only(args[0], JSV_NUMBER) : NULL;
        int64_t place = at ? at->number : 0;
        if ((n && !at) || place < 0 || place >= (int64_t)of->len || !is_ascii(of))
                return NULL;
        return js_value_number(js, of->text[place]);
}

static struct js_value *added(struct js *js, struct js_value *of, struct js_value **args, size_t n)
{
        struct buf buf;
        bool good = true;
        buf_init(&buf, JS_TEXT_MAX);
        buf_add(&buf, of->text, of->len);
        for (size_t i = 0; i < n && good; i++) {
                const struct js_value *text = js_string_of(js, args[i]);
                good = text && buf_add(&buf, text->text, text->len);
        }
        return text_of(js, &buf, good);
}

static struct js_value *list_method(struct js *js, struct js_value *of, const char *name, size_t len,
        struct js_value **args, size_t n)
{
        if (js_is("join", name, len) || js_is("toString", name, len)) {
                const struct js_value *between = n ? js_only(args[0], JSV_TEXT) : NULL;
                if (n && !between)
                        return NULL;
                return between ? joined(js, of, between->text, between->len) : joined(js, of, ",", 1);
        }
        if (js_is("reverse", name, len) || js_is("toReversed", name, len)) {
                struct js_value *list = js_value_list(js, of->items, of->n);
                for (size_t i = 0; i < list->n; i++)
                        list->items[i] = of->items[of->n - 1 - i];
                return list;
        }
        if (js_is("concat", name, len)) {
                struct js_value *items[JS_ITEMS_MAX];
                size_t all = 0;
                for (size_t i = 0; i <= n; i++) {
                        struct js_value *one = i ? args[i - 1] : of, *list = js_only(one, JSV_LIST);
                        size_t more = list ? list->n : 1;
                        if (all + more > JS_ITEMS_MAX)
                                return NULL;
                        for (size_t k = 0; k < more; k++)
                                items[all++] = list ? list->items[k] : one;
                }
                return js_value_list(js, items, all);
        }
        if (js_is("pop", name, len) || js_is("shift", name, len))
                return of->n ? of->items[js_is("pop", name, len) ? of->n - 1 : 0] : NULL;
        return js_is("slice", name, len) || js_is("at", name, len) ? part(js, of, name, len, args, n) : NULL;
}

struct js_value *js_text_method(struct js *js, struct js_value *of, const char *name, size_t len,
        struct js_value **args, size_t n)
{
        static const char *const parts[] = { "slice", "substring", "substr", "at", "charAt" };
        struct js_value *first = n ? js_only(args[0], JSV_TEXT) : NULL;
        if (!is_alone(of))
                return NULL;
        if (of->what == JSV_LIST)
                return list_method(js, of, name, len, args, n);
        if (js_is("toString", name, len) || js_is("valueOf", name, len))
                return of->what == JSV_NUMBER && n ? NULL : js_string_of(js, of);
        if (of->what != JSV_TEXT)
                return NULL;
        for (size_t i = 0; i < ARRAY_LEN(parts); i++)
                if (js_is(parts[i], name, len))
                        return part(js, of, name, len, args, n);
        if (js_is("split", name, len))
                return split(js, of, first);
        if (js_is("replace", name, len) || js_is("replaceAll", name, len))
                return replaced(js, of, first, n > 1 ? js_only(args[1], JSV_TEXT) : NULL,
                        js_is("replaceAll", name, len));
        if (js_is("toLowerCase", name, len) || js_is("toUpperCase", name, len))
                return cased(js, of, js_is("toUpperCase", name, len));
        if (js_is("repeat", name, len))
                return repeated(js, of, n ? js_only(args[0], JSV_NUMBER) : NULL);
        if (js_is("trim", name, len) || js_is("normalize", name, len))
                return js_is("trim", name, len) ? trimmed(js, of) : is_ascii(of) ? of : NULL;
        if (js_is("charCodeAt", name, len) || js_is("codePointAt", name, len))
                return code_at(js, of, args, n);
        return js_is("concat", name, len) ? added(js, of, args, n) : NULL;
}
