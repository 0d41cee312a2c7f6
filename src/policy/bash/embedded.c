/*
 * Code for other interpreters.  Languages with an analysis are analysed; other code is searched for words with the
 * power to run commands.
 */
#include "policy/bash/bash.h"

#include <ctype.h>

/* ---- languages with an analysis ---- */

static const struct analysis *find_analysis(const struct shell *sh, const char *language)
{
        return language && sh->facts->find_analysis ? sh->facts->find_analysis(language) : NULL;
}

static void analysed(struct shell *sh, const struct run *run, const char *language, const char *text, size_t len)
{
        const struct analysis *analysis = find_analysis(sh, language);
        struct facts inner = { .arena = sh->arena };
        struct csn_error err = { 0 };
        if (!sh->report || !analysis || (sh->code_bytes += len) > 4 * MIB)
                return;
        /* Text put in by the shell counts as data. */
        char *code = arena_copy(sh->arena, text, len);
        for (size_t i = 0; i < len; i++)
                if (!code[i])
                        code[i] = '0';
        const char *prepared = analysis->prepare ? analysis->prepare(code, len, &inner, &len) : code;
        if (inner.broken || analysis->analyse(prepared, len, &inner, &err) < 0 || inner.broken)
                return;
        for (size_t i = 0; i < inner.n; i++) {
                struct fact fact = inner.list[i];
                fact.language = language;
                fact.start = sh->fixed ? sh->start : run->start;
                fact.end = sh->fixed ? sh->end : run->end;
                facts_add(sh->facts, fact);
        }
}

/* ---- languages without an analysis ---- */

struct hidden {
        const char *word;
        bool call;                     /* only in front of a bracket */
};

static const struct hidden perl_words[] = { { "system", false }, { "exec", false }, { "qx", false }, { "`", false },
        { "fork", false }, { "syscall", false }, { "socket", false }, { "IO::Socket", false }, { "LWP", false },
        { "popen", false }, { "open3", false }, { "HTTP::Tiny", false }, { "Net::", false }, { NULL, false } };
static const struct hidden ruby_words[] = { { "system", false }, { "exec", false }, { "`", false }, { "%x", false },
        { "spawn", false }, { "popen", false }, { "Open3", false }, { "TCPSocket", false }, { "Net::HTTP", false },
        { "open-uri", false }, { "fork", false }, { NULL, false } };
static const struct hidden php_words[] = { { "system", true }, { "exec", true }, { "shell_exec", true },
        { "passthru", true }, { "popen", true }, { "proc_open", true }, { "`", false }, { "fsockopen", true },
        { "eval", true }, { NULL, false } };
static const struct hidden node_words[] = { { "child_process", false }, { "require", true },
        { "process.binding", false }, { "eval", true }, { "Function", true }, { "fetch", true }, { "import", false },
        { NULL, false } };
static const struct hidden lua_words[] = { { "os.execute", false }, { "io.popen", false }, { "socket", false },
        { NULL, false } };

static const struct interpreter {
        const char *name, *options;    /* letters before code */
        const char *language;          /* language with an analysis, or NULL */
        const struct hidden *words;
} interpreters[] = {
        { "python", "c", "python", NULL },
        { "perl", "eE", NULL, perl_words },
        { "ruby", "e", NULL, ruby_words },
        { "php", "r", NULL, php_words },
        { "pypy", "c", "python", NULL },
        { "node", "ep", "javascript", node_words },
        { "nodejs", "ep", "javascript", node_words },
        { "lua", "e", NULL, lua_words },
};

static bool word_at(const char *text, size_t len, size_t at, const struct hidden *hidden)
{
        size_t n = strlen(hidden->word);
        if (len - at < n || memcmp(text + at, hidden->word, n) != 0)
                return false;
        bool letters = isalnum((unsigned char)hidden->word[0]);
        if (letters && at && (isalnum((unsigned char)text[at - 1]) || strchr("_$@%.", text[at - 1])))
                return false;
        size_t end = at + n;
        if (isalnum((unsigned char)hidden->word[n - 1]) && end < len &&
                (isalnum((unsigned char)text[end]) || text[end] == '_'))
                return false;
        while (end < len && text[end] == ' ')
                end++;
        if (letters && !hidden->call && ((at && text[at - 1] == '/') || (end < len && strchr("/|=,", text[end]))))
                return false;
        return !hidden->call || (end < len && text[end] == '(');
}

/* Words in quotes of the language are data; the quotes of the shell are gone. */
static const char *find_hidden(const char *text, size_t len, const struct hidden *words)
{
        char quote = 0;
        for (size_t at = 0; at < len; at++) {
                if (quote && text[at] == '\\') {
                        at++;
                        continue;
                }
                for (const struct hidden *hidden = words;
                        hidden->word && (!quote || strchr(":_", hidden->word[strlen(hidden->word) - 1])); hidden++)
                        if (word_at(text, len, at, hidden))
                                return hidden->word;
                if (text[at] == '"' || text[at] == '\'')
                        quote = quote == text[at] ? 0 : quote ? quote : text[at];
        }
        return NULL;
}

static void other_code(struct shell *sh, const struct run *run, const struct interpreter *one, const char *text,
        size_t len)
{
        if (len && !text[0] && len == 1)
                bash_report(sh, FACT_CODE, "interpreter", 11, run->start, run->end);
        if (find_analysis(sh, one->language)) {
                analysed(sh, run, one->language, text, len);
                return;
        }
        const char *found = one->words ? find_hidden(text, len, one->words) : NULL;
        if (found)
                bash_report(sh, FACT_CODE, "interpreter", 11, run->start, run->end);
}

static void interpreter(struct shell *sh, const struct run *run, const struct interpreter *one)
{
        bool any = false;
        size_t at = 1;
        for (; at < run->words.n; at++) {
                const struct field *word = &run->words.list[at];
                if (word->len < 2 || word->text[0] != '-')
                        break;
                if (one->language && field_is(word, "-m"))
                        return;
                bool lone = field_is(word, "--eval") || field_is(word, "--print");
                const char *letter =
                        word->text[1] == '-' ? NULL : word->text + 1 + strcspn(word->text + 1, one->options);
                if (!lone && (!letter || !*letter))
                        continue;
                any = true;
                if (!lone && letter[1] && strcmp(one->language ? one->language : "", "python") == 0)
                        other_code(sh, run, one, letter + 1, word->len - (size_t)(letter + 1 - word->text));
                else if (++at < run->words.n)
                        other_code(sh, run, one, run->words.list[at].text, run->words.list[at].len);
                if (one->language)
                        return;
        }
        bool input = at >= run->words.n || field_is(&run->words.list[at], "-") ||
                field_is(&run->words.list[at], "/dev/stdin");
        if (!any && at < run->words.n && field_begins(&run->words.list[at], "/dev/fd/"))
                bash_report(sh, FACT_CODE, "substitution", 12, run->start, run->end);
        if (any || !input || sh->fed == FED_NOT)
                return;
        if (sh->fed_text)
                other_code(sh, run, one, sh->fed_text, sh->fed_len);
        else
                bash_report(sh, FACT_CODE, "pipe", 4, run->start, run->end);
}

bool bash_embedded_interpreter(struct shell *sh, const struct run *run, const char *name)
{
        if (strcmp(name, "awk") == 0 || strcmp(name, "gawk") == 0 || strcmp(name, "mawk") == 0 ||
                strcmp(name, "nawk") == 0) {
                bash_awk(sh, run);
                return true;
        }
        size_t len = strlen(name);
        while (len && (isdigit((unsigned char)name[len - 1]) || name[len - 1] == '.'))
                len--;
        for (size_t i = 0; i < ARRAY_LEN(interpreters); i++)
                if (strlen(interpreters[i].name) == len && memcmp(interpreters[i].name, name, len) == 0) {
                        interpreter(sh, run, &interpreters[i]);
                        return true;
                }
        return false;
}
