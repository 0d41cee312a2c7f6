/*
 * The program in a text that a model wrote: the content of a fenced code block of Markdown (CommonMark, 4.5).
 *
 * A closing fence inside of a triple-quoted string of Python does not end the block.  One pass over the text finds all
 * blocks; a second pass follows if a string has no end, and then no string hides a fence.
 *
 * extract verl is another rule, which knows neither lines nor strings.
 */
#include "lang/extract.h"

#include <string.h>
#include <strings.h>

#define BLOCKS_MAX 256             /* last blocks whose tags are looked up */
#define TAG_MAX 64                 /* bytes; a longer tag names no language */

struct line {
        const char *text;
        size_t len;                /* without line feed and carriage return */
        bool crlf;
};

struct block {
        size_t from, to;           /* of the content */
        size_t line;               /* of the first line of the content, from 1 */
        size_t indent;             /* of the opening fence */
        const char *tag;
        size_t tag_len;
        bool crlf;
};

struct fence {
        char mark;
        size_t count, indent;
        const char *info;
        size_t info_len;
};

struct scan {
        const struct bytes *text;
        const struct language *wanted;
        size_t at, line;           /* of the next line; its number, from 1 */
        bool knows_strings;
        struct block blocks[BLOCKS_MAX];
        size_t blocks_n;           /* found so far; the last BLOCKS_MAX are in `blocks` */

        /* the block that is open, if fence.count is not 0 */
        struct fence fence;
        struct block block;
        char quote;                /* of the triple-quoted string that is open, or 0 */
        /* the first closing fence inside of a string; 0: none */
        size_t hidden_from, hidden_next, hidden_line;
};

static bool take_line(struct scan *scan, struct line *ret)
{
        const char *begin = scan->text->bytes + scan->at;
        size_t left = scan->text->len - scan->at;
        if (!left)
                return false;
        const char *end = memchr(begin, '\n', left);
        size_t len = end ? (size_t)(end - begin) : left;
        scan->at += len + (end != NULL);
        scan->line++;
        *ret = (struct line){ .text = begin, .len = len };
        if (len && begin[len - 1] == '\r') {
                ret->len--;
                ret->crlf = true;
        }
        return true;
}

static bool is_among(const char *characters, char c)
{
        return c && strchr(characters, c);
}

static bool is_blank(const char *text, size_t len)
{
        for (size_t i = 0; i < len; i++)
                if (!is_among(" \t\r\n", text[i]))
                        return false;
        return true;
}

/* Whether the line is a fence, opening or closing. */
static bool is_fence(const struct line *line, struct fence *ret)
{
        size_t at = 0;
        while (at < line->len && at < 4 && line->text[at] == ' ')
                at++;
        if (at > 3 || at == line->len || (line->text[at] != '`' && line->text[at] != '~'))
                return false;
        *ret = (struct fence){ .mark = line->text[at], .indent = at };
        while (at < line->len && line->text[at] == ret->mark) {
                ret->count++;
                at++;
        }
        ret->info = line->text + at;
        ret->info_len = line->len - at;
        return ret->count >= 3 && !(ret->mark == '`' && memchr(ret->info, '`', ret->info_len));
}

/* The first word of the information behind a fence: python of "python title=x", "{.python}" and "python:main.py". */
static void take_tag(const struct fence *fence, struct block *block)
{
        size_t at = 0, end;
        while (at < fence->info_len && is_among(" \t{.", fence->info[at]))
                at++;
        for (end = at; end < fence->info_len && !is_among(" \t{},:;", fence->info[end]);)
                end++;
        block->tag = fence->info + at;
        block->tag_len = end - at;
}

/* Tags of Python in all its names, and no tag where the program is one of Python. */
static bool is_python(const struct scan *scan, const struct block *block)
{
        return block->tag_len ? block->tag_len >= 2 && strncasecmp(block->tag, "py", 2) == 0
                              : scan->wanted == &lang_python;
}

static void open_block(struct scan *scan, const struct fence *fence, const struct line *line)
{
        scan->fence = *fence;
        scan->block = (struct block){
                .from = scan->at, .line = scan->line + 1, .indent = fence->indent, .crlf = line->crlf
        };
        scan->quote = 0;
        scan->hidden_next = 0;
        take_tag(fence, &scan->block);
}

/* A block without text does not count: a stray fence behind the program opens one. */
static void close_block(struct scan *scan, size_t to)
{
        struct block *block = &scan->block;
        scan->fence.count = 0;
        block->to = to;
        if (is_blank(scan->text->bytes + block->from, to - block->from))
                return;
        scan->blocks[scan->blocks_n++ % BLOCKS_MAX] = *block;
}

static bool is_triple(const struct line *line, size_t at, char quote)
{
        return at + 2 < line->len && line->text[at] == quote && line->text[at + 1] == quote &&
                line->text[at + 2] == quote;
}

/* The index behind a string of one line that begins at `at`. */
static size_t skip_string(const struct line *line, size_t at)
{
        char quote = line->text[at++];
        while (at < line->len && line->text[at] != quote)
                at += line->text[at] == '\\' ? 2 : 1;
        return at + 1;
}

/* Which triple-quoted string is open behind a line of Python. */
static char quote_after(char quote, const struct line *line)
{
        for (size_t at = 0; at < line->len;) {
                char c = line->text[at];
                if (quote && is_triple(line, at, quote)) {
                        quote = 0;
                        at += 3;
                } else if (quote) {
                        at += c == '\\' ? 2 : 1;
                } else if (c == '#') {
                        break;
                } else if ((c == '"' || c == '\'') && is_triple(line, at, c)) {
                        quote = c;
                        at += 3;
                } else {
                        at = c == '"' || c == '\'' ? skip_string(line, at) : at + 1;
                }
        }
        return quote;
}

static void take_content(struct scan *scan, size_t from, const struct line *line)
{
        struct fence fence;
        bool closes = is_fence(line, &fence) && fence.mark == scan->fence.mark && fence.count >= scan->fence.count &&
                is_blank(fence.info, fence.info_len);
        if (closes && !scan->quote) {
                close_block(scan, from);
        } else if (closes && !scan->hidden_next) {
                scan->hidden_from = from;
                scan->hidden_next = scan->at;
                scan->hidden_line = scan->line;
        } else if (!closes && scan->knows_strings && is_python(scan, &scan->block)) {
                scan->quote = quote_after(scan->quote, line);
        }
}

/* At the end of the text.  False: a string that has no end hid the closing fence, and the scan goes on behind it. */
static bool is_through(struct scan *scan)
{
        if (!scan->fence.count)
                return true;
        if (!scan->hidden_next) {
                close_block(scan, scan->text->len);
                return true;
        }
        scan->knows_strings = false;
        scan->at = scan->hidden_next;
        scan->line = scan->hidden_line;
        close_block(scan, scan->hidden_from);
        return false;
}

static void find_blocks(struct scan *scan)
{
        struct line line;
        struct fence fence;
        do {
                for (size_t from = scan->at; take_line(scan, &line); from = scan->at)
                        if (scan->fence.count)
                                take_content(scan, from, &line);
                        else if (is_fence(&line, &fence))
                                open_block(scan, &fence, &line);
        } while (!is_through(scan));
}

static const struct language *language_of(const struct language *added, const struct block *block)
{
        const struct language *language = NULL;
        struct csn_error err;
        char tag[TAG_MAX + 1];
        if (!block->tag_len || block->tag_len > TAG_MAX || memchr(block->tag, 0, block->tag_len))
                return NULL;
        snprintf(tag, sizeof tag, "%.*s", (int)block->tag_len, block->tag);
        return lang_find(added, tag, &language, &err) < 0 ? NULL : language;
}

/* The content without the fence's indentation; with the line ends of Unix, which all interpreters read. */
static struct bytes content_of(const struct scan *scan, const struct block *block, struct arena *arena)
{
        const char *text = scan->text->bytes;
        struct bytes ret = { arena_alloc(arena, block->to - block->from + 1), 0 };
        for (size_t at = block->from; at < block->to;) {
                const char *end = memchr(text + at, '\n', block->to - at);
                size_t next = end ? (size_t)(end - text) + 1 : block->to;
                for (size_t i = 0; i < block->indent && at < next && text[at] == ' '; i++)
                        at++;
                size_t len = next - at;
                memcpy(ret.bytes + ret.len, text + at, len);
                ret.len += len;
                if (block->crlf && len >= 2 && text[next - 1] == '\n' && text[next - 2] == '\r') {
                        ret.bytes[ret.len - 2] = '\n';
                        ret.len--;
                }
                at = next;
        }
        ret.bytes[ret.len] = 0;
        return ret;
}

/* ---- extract verl ---- */

static const char FENCE[] = "```", PYTHON[] = "```python";

/* The last fence of Python, or the first fence; NULL: none.  *ret_tag is the text behind the marks and their tag. */
static const char *find_verl_fence(const struct bytes *text, const char **ret_tag)
{
        const char *end = text->bytes + text->len, *found = NULL;
        for (const char *at = text->bytes; (at = memmem(at, (size_t)(end - at), PYTHON, sizeof PYTHON - 1));
                at += sizeof PYTHON - 1)
                found = at;
        if (found) {
                *ret_tag = found + sizeof PYTHON - 1;
                return found;
        }
        found = memmem(text->bytes, text->len, FENCE, sizeof FENCE - 1);
        *ret_tag = found ? found + sizeof FENCE - 1 : NULL;
        return found;
}

static bool is_of_tag(char c)
{
        return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || is_among("+-#._", c);
}

/* The line behind the rest of a tag: of `3` in "```python3"; `at` itself where the line is more than a word. */
static const char *skip_tag(const char *at, const char *end)
{
        const char *one = at;
        while (one < end && is_of_tag(*one))
                one++;
        while (one < end && is_among(" \t\r", *one))
                one++;
        return one < end && *one == '\n' ? one + 1 : at;
}

/* A fence is three backquotes anywhere, also within a line. */
static bool extract_verl(const struct language *added, const struct bytes *text, struct arena *arena,
        struct lang_extracted *ret)
{
        const char *end = text->bytes + text->len, *tag, *fence = find_verl_fence(text, &tag);
        if (!fence)
                return false;
        const char *close = memmem(tag, (size_t)(end - tag), FENCE, sizeof FENCE - 1);
        const char *to = close ? close : end, *from = skip_tag(tag, to);
        if (is_blank(from, (size_t)(to - from)))
                return false;
        struct fence opening = { .info = fence + sizeof FENCE - 1 };
        struct block block = { 0 };
        opening.info_len = from > tag ? (size_t)(from - opening.info) - 1 : (size_t)(tag - opening.info);
        take_tag(&opening, &block);
        *ret = (struct lang_extracted){ .line = 1, .language = language_of(added, &block) };
        for (const char *at = text->bytes; at < from; at++)
                ret->line += *at == '\n';
        size_t len = (size_t)(to - from);
        ret->program = (struct bytes){ arena_alloc(arena, len + 1), len };
        memcpy(ret->program.bytes, from, len);
        return true;
}

bool lang_extract(const struct language *added, int mode, const struct language *wanted, const struct bytes *text,
        struct arena *arena, struct lang_extracted *ret)
{
        struct scan scan = { .text = text, .wanted = wanted, .knows_strings = true };
        if (mode == extract_NONE || !text->len)
                return false;
        if (mode == extract_VERL)
                return extract_verl(added, text, arena, ret);
        find_blocks(&scan);
        size_t kept = scan.blocks_n < BLOCKS_MAX ? scan.blocks_n : BLOCKS_MAX;
        for (size_t i = 1; i <= kept; i++) {
                const struct block *block = &scan.blocks[(scan.blocks_n - i) % BLOCKS_MAX];
                const struct language *language = language_of(added, block);
                if (mode == extract_TAGGED_FENCE && (!language || (wanted && language != wanted)))
                        continue;
                *ret = (struct lang_extracted){
                        .program = content_of(&scan, block, arena), .line = block->line, .language = language
                };
                return true;
        }
        return false;
}
