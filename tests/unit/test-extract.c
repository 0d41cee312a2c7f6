/* extract: programs in texts that models write, and texts that only look like it (S0-92). */
#include "lang/extract.h"

#include <time.h>

#include "tap.h"

static struct arena arena;

/* "LINE:PROGRAM", or "-" where the program is the whole text. */
static const char *program_of(int mode, const struct language *wanted, const char *text, size_t len)
{
        const struct bytes bytes = { (char *)(uintptr_t)text, len };
        struct lang_extracted found;
        if (!lang_extract(NULL, mode, wanted, &bytes, &arena, &found))
                return "-";
        return arena_text(&arena, "%zu:%s", found.line, found.program.bytes);
}

static const char *last(const char *text)
{
        return program_of(extract_LAST_FENCE, &lang_python, text, strlen(text));
}

static const char *tagged(const struct language *wanted, const char *text)
{
        return program_of(extract_TAGGED_FENCE, wanted, text, strlen(text));
}

#define SAME(got, want)                                         \
        do {                                                    \
                const char *got_ = (got);                       \
                CHECK(strcmp(got_, want) == 0);                 \
                if (strcmp(got_, want) != 0)                    \
                        printf("# got: %s\n", got_);            \
        } while (0)

static void a_text_without_a_fence_is_the_program(void)
{
        SAME(last("print(1)\n"), "-");
        SAME(last(""), "-");
        SAME(last("`x`\n``y``\n    ```\n    a\n    ```\n"), "-");
        SAME(last("```not a fence``` of CommonMark\n"), "-");
        SAME(program_of(extract_NONE, NULL, "```\na\n```\n", 10), "-");
}

static void the_last_block_with_text_counts(void)
{
        SAME(last("Sure!\n```python\nprint(1)\n```\nDone.\n"), "3:print(1)\n");
        SAME(last("```py\na\n```\n```\nb\n```\n"), "5:b\n");
        SAME(last("```\na\n```\nDone.\n```\n"), "2:a\n");
        SAME(last("```\na\n```\n```\n\n \n```\n"), "2:a\n");
        SAME(last("```python\nprint(1)"), "2:print(1)");
}

static void fences_are_those_of_commonmark(void)
{
        SAME(last("~~~python\na = '```'\n```\n~~~\n"), "2:a = '```'\n```\n");
        SAME(last("````\na\n```\nb\n````\n"), "2:a\n```\nb\n");
        SAME(last("```\na\n`````\nb\n"), "2:a\n");
        SAME(last("   ```\n   a\n     b\n  c\n  ```  \nd\n"), "2:a\n  b\nc\n");
        SAME(last("```\na\n    ```\nb\n```\n"), "2:a\n    ```\nb\n");
        SAME(last("```\na\n```x\nb\n"), "2:a\n```x\nb\n");
}

static void line_ends_of_windows_become_those_of_unix(void)
{
        SAME(last("Hi\r\n```bash\r\necho 1\r\necho 2\r\n```\r\nBye\r\n"), "3:echo 1\necho 2\n");
        SAME(last("```\na\r\n```\n"), "2:a\r\n");
}

static void a_fence_inside_of_a_string_of_python_stays(void)
{
        SAME(last("```python\ns = \"\"\"\n```\nx\n```\n\"\"\"\n```\nb\n"), "2:s = \"\"\"\n```\nx\n```\n\"\"\"\n");
        SAME(last("```python\ns = '''a''' # \"\"\"\n```\nb\n"), "2:s = '''a''' # \"\"\"\n");
        SAME(last("```python\nprint('\"\"\"', \"it's\")\n```\nb\n"), "2:print('\"\"\"', \"it's\")\n");
        SAME(last("```python\nr'''\\'''\n```\n'''\n```\n"), "2:r'''\\'''\n```\n'''\n");
        /* A string without an end hides no fence. */
        SAME(last("```python\ns = \"\"\"\n```\ntext\n```python\nb\n```\n"), "6:b\n");
        SAME(last("```js\ns = \"\"\"\n```\n"), "2:s = \"\"\"\n");
}

static void a_tag_names_the_language(void)
{
        static const char both[] = "```js\n1\n```\n```python3\n2\n```\n```\n3\n```\n```console\n4\n```\n";
        SAME(tagged(&lang_python, both), "5:2\n");
        SAME(tagged(&lang_javascript, both), "2:1\n");
        SAME(tagged(&lang_bash, both), "-");
        SAME(tagged(NULL, both), "5:2\n");
        SAME(tagged(&lang_python, "```Python title=\"x\"\n1\n```\n"), "2:1\n");
        SAME(tagged(&lang_python, "```{.python .x}\n1\n```\n"), "2:1\n");
        SAME(tagged(&lang_python, "```python:main.py\n1\n```\n"), "2:1\n");
        SAME(tagged(&lang_python, "```pythonista\n1\n```\n"), "-");
        struct lang_extracted found;
        const struct bytes text = { (char[]){ "```sh\nls\n```\n" }, 13 };
        CHECK(lang_extract(NULL, extract_LAST_FENCE, NULL, &text, &arena, &found) && found.language == &lang_bash);
}

/* CPU time in ms for a text of 1 MiB that repeats a piece. */
static double time_of(int mode, const char *piece)
{
        struct buf text;
        buf_init(&text, 2 * MIB);
        while (text.len < MIB)
                buf_add(&text, piece, strlen(piece));
        clock_t begun = clock();
        program_of(mode, &lang_python, text.bytes, text.len);
        double ms = (double)(clock() - begun) * 1000 / CLOCKS_PER_SEC;
        buf_done(&text);
        return ms;
}

/* Work that grew with the square of the length would take minutes. */
static const char *verl(const char *text)
{
        return program_of(extract_VERL, NULL, text, strlen(text));
}

static void verl_takes_the_last_fence_of_python_else_the_first_fence(void)
{
        SAME(verl("print(1)"), "-");
        SAME(verl("a\n```python\nprint(1)\n```\n```text\nb\n```\n"), "3:print(1)\n");
        SAME(verl("```python\n1\n```\n```python\n2\n```\n"), "5:2\n");
        SAME(verl("```python3\n1\n```"), "2:1\n");
        SAME(verl("```\n1\n```\n```\n2\n```\n"), "2:1\n");
        SAME(verl("```cpp\n1\n```"), "2:1\n");
        SAME(verl("x ```print(1)``` y"), "1:print(1)");
        SAME(verl("```python\n1"), "2:1");
        SAME(verl("```python\n```"), "-");
        SAME(verl("``````"), "-");
        SAME(verl("```"), "-");
        SAME(verl("```python\na = '''\n```\n'''\n```\n"), "2:a = '''\n");
}

static void a_text_of_a_mebibyte_takes_linear_time(void)
{
        static const char *const pieces[] = { "`", "```\n", "```python\n\"\"\"\n", "```py\na\n```\n", "~~~x\na\n~~~\n",
                "```\n'''\n```\na\n", "\n", "   ```\r\n", "\"\"\"", "```python\n'''\n```\n\"\"\"\n```\n" };
        for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
                for (int mode = extract_LAST_FENCE; mode <= extract_TAGGED_FENCE; mode++)
                        CHECK(time_of(mode, pieces[i]) < 2000);
}

static void zeros_are_bytes_like_others(void)
{
        SAME(program_of(extract_LAST_FENCE, NULL, "```\na\0b\n```\n", 12), "2:a");
        SAME(program_of(extract_TAGGED_FENCE, NULL, "```py\0x\na\n```\n", 14), "-");
}

int main(void)
{
        RUN(a_text_without_a_fence_is_the_program);
        RUN(the_last_block_with_text_counts);
        RUN(fences_are_those_of_commonmark);
        RUN(line_ends_of_windows_become_those_of_unix);
        RUN(a_fence_inside_of_a_string_of_python_stays);
        RUN(a_tag_names_the_language);
        RUN(verl_takes_the_last_fence_of_python_else_the_first_fence);
        RUN(a_text_of_a_mebibyte_takes_linear_time);
        RUN(zeros_are_bytes_like_others);
        arena_done(&arena);
        return tap_done();
}
