/* Effects of commands on the system: files written, removed or read, rights, signals. */
#include "policy/bash/bash.h"

#include <fnmatch.h>

/* ---- paths ---- */

/* Folders matched by a pattern such as /e?c. */
static const char *const tops[] = { "bin", "boot", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "run",
        "sbin", "srv", "sys", "usr", "var" };

/* An absolute path without //, /./ and /../; NULL: unknown from its beginning. */
static char *path_of(struct shell *sh, const struct field *field, size_t *ret_len)
{
        const char *text = field->text;
        size_t len = field->len;
        if (!len || !text[0] || len > 4096)
                return NULL;
        if (text[0] == '~')
                return arena_copy(sh->arena, "/home", *ret_len = 5);
        if (text[0] != '/') {
                if (!sh->cwd)
                        return NULL;
                size_t before = strlen(sh->cwd);
                char *both = arena_alloc(sh->arena, before + len + 2);
                memcpy(both, sh->cwd, before);
                both[before] = '/';
                memcpy(both + before + 1, text, len);
                text = both;
                len += before + 1;
        }
        char *out = arena_alloc(sh->arena, len + 2);
        size_t n = 0;
        for (size_t at = 0; at < len;) {
                while (at < len && text[at] == '/')
                        at++;
                size_t end = at;
                while (end < len && text[end] != '/')
                        end++;
                size_t part = end - at;
                if (part == 2 && memcmp(text + at, "..", 2) == 0) {
                        while (n && out[--n] != '/')
                                ;
                } else if (part && !(part == 1 && text[at] == '.')) {
                        out[n++] = '/';
                        memcpy(out + n, text + at, part);
                        n += part;
                }
                at = end;
        }
        if (!n)
                out[n++] = '/';
        out[n] = 0;
        *ret_len = n;
        return out;
}

/* Report a path, and with a pattern in its first part each matching folder. */
static void say_path(struct shell *sh, enum fact_kind kind, const struct field *field, const char *path, size_t len,
        uint32_t start, uint32_t end)
{
        const char *slash = len > 1 ? memchr(path + 1, '/', len - 1) : NULL;
        size_t first = slash ? (size_t)(slash - path) : len;
        bash_report(sh, kind, path, len, start, end);
        if (!field->glob || strcspn(path, "*?[") >= first || len < 2)
                return;
        char *pattern = arena_copy(sh->arena, path + 1, first - 1);
        for (size_t i = 0; i < ARRAY_LEN(tops); i++)
                if (fnmatch(pattern, tops[i], 0) == 0) {
                        char *one = arena_text(sh->arena, "/%s%.*s", tops[i], (int)(len - first), path + first);
                        bash_report(sh, kind, one, strlen(one), start, end);
                }
}

void bash_writes(struct shell *sh, const struct field *file, uint32_t start, uint32_t end)
{
        size_t len;
        const char *path = path_of(sh, file, &len);
        if (path)
                say_path(sh, FACT_WRITE, file, path, len, start, end);
}

static bool names_environ(const char *path, size_t len)
{
        return len > 14 && memcmp(path, "/proc/", 6) == 0 && memcmp(path + len - 8, "/environ", 8) == 0;
}

void bash_reads(struct shell *sh, const struct field *file, uint32_t start, uint32_t end)
{
        static const char *const secrets[] = { "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/proc/self/environ" };
        size_t len;
        const char *path = path_of(sh, file, &len);
        if (!path)
                return;
        if (names_environ(path, len))
                path = "/proc/PID/environ", len = 17;
        bash_report(sh, FACT_READ, path, len, start, end);
        for (size_t i = 0; file->glob && !memchr(path, 0, len) && i < ARRAY_LEN(secrets); i++)
                if (fnmatch(path, secrets[i], FNM_PATHNAME) == 0)
                        bash_report(sh, FACT_READ, i == 3 ? "/proc/PID/environ" : secrets[i],
                                strlen(secrets[i]) - (i == 3), start, end);
}

/* ---- rm -r ---- */

static void removes(struct shell *sh, const struct run *run, const struct field *file)
{
        size_t len;
        struct field one = *file;
        const char *path;
        if (one.len && one.text[0] == '~' && memchr(one.text, '/', one.len) == NULL)
                path = "~", len = 1;
        else if (!(path = path_of(sh, &one, &len)))
                return;
        /* All files of a folder are the folder. */
        while (one.glob && len > 1 &&
                (memcmp(path + len - 2, "/*", 2) == 0 || (len > 2 && memcmp(path + len - 3, "/.*", 3) == 0) ||
                        (len > 4 && memcmp(path + len - 5, "/{*}", 4) == 0)))
                len = len - (path[len - 2] == '/' ? 2 : 3), len = len ? len : 1;
        if (len == 10 && memcmp(path, "/home/user", 10) == 0)
                path = "~", len = 1;
        path = arena_copy(sh->arena, path, len);
        say_path(sh, FACT_REMOVE, &one, path, len, run->start, run->end);
}

static bool is_option(const struct field *word)
{
        return word->len > 1 && word->text[0] == '-';
}

static void rm(struct shell *sh, const struct run *run)
{
        bool recursive = false, options = true;
        for (size_t i = 1; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                if (options && field_is(word, "--"))
                        options = false;
                else if (options && is_option(word))
                        recursive = recursive ||
                                (word->text[1] == '-' ? field_begins(word, "--r")
                                                      : memchr(word->text, 'r', word->len) ||
                                                        memchr(word->text, 'R', word->len));
        }
        options = true;
        for (size_t i = 1; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                if (options && field_is(word, "--"))
                        options = false;
                else if (options && is_option(word))
                        continue;
                else if (recursive)
                        removes(sh, run, word);
        }
}

static void find_delete(struct shell *sh, const struct run *run)
{
        static const char tests[] =
                " -name -iname -path -ipath -regex -mtime -mmin -atime -ctime -size -empty -newer -user -group -perm -links ";
        bool deletes = false, tested = false;
        size_t expression = 1;
        while (expression < run->words.n &&
                (!is_option(&run->words.list[expression]) || strchr("HLP", run->words.list[expression].text[1])))
                expression++;
        for (size_t i = expression; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                deletes = deletes || field_is(word, "-delete");
                tested = tested || (is_option(word) && strstr(tests, arena_text(sh->arena, " %s ", word->text)));
        }
        for (size_t i = 1; deletes && i < expression; i++) {
                bash_writes(sh, &run->words.list[i], run->start, run->end);
                /* With a test find(1) removes only some of the files. */
                if (!tested)
                        removes(sh, run, &run->words.list[i]);
        }
}

/* ---- rights ---- */

static bool sets_id(const char *mode)
{
        if (mode[0] >= '0' && mode[0] <= '7')
                return strspn(mode, "01234567") == strlen(mode) && (strtoul(mode, NULL, 8) & 06000);
        if ((mode[0] == '+' || mode[0] == '=') && mode[1] >= '0' && mode[1] <= '7')
                return (strtoul(mode + 1, NULL, 8) & 06000) != 0;
        for (const char *c = mode; *c;) {
                c += strspn(c, "ugoa");
                if (!*c || !strchr("+-=", *c))
                        return false;
                while (*c && strchr("+-=", *c)) {
                        bool adds = *c++ != '-';
                        size_t n = strspn(c, "rwxXstugo");
                        if (adds && memchr(c, 's', n))
                                return true;
                        c += n;
                }
                c += *c == ',';
        }
        return false;
}

static void rights(struct shell *sh, const struct run *run, const char *name)
{
        bool chmod = strcmp(name, "chmod") == 0;
        for (size_t i = 1; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                const char *mode = NULL;
                if (chmod && (!is_option(word) || strchr("rwxst", word->text[1])) && !word->hole)
                        mode = word->text;
                else if (!chmod && field_is(word, "-m") && i + 1 < run->words.n)
                        mode = run->words.list[i + 1].text;
                else if (!chmod && field_begins(word, "--mode="))
                        mode = word->text + 7;
                else if (!chmod && field_begins(word, "-m") && word->len > 2)
                        mode = word->text + 2;
                if (mode && sets_id(mode))
                        bash_report(sh, FACT_SET_ID, mode, strlen(mode), run->start, run->end);
                if (chmod && mode && mode[0] != '-')
                        return;
        }
}

static void kill(struct shell *sh, const struct run *run)
{
        size_t at = 1;
        const struct fields *words = &run->words;
        if (words->n == 2 && field_is(&words->list[1], "-1"))
                at = 0;
        if (at && at < words->n &&
                (field_is(&words->list[at], "-s") || field_is(&words->list[at], "-n") ||
                        field_is(&words->list[at], "--signal")))
                at += 2;
        else if (at && at < words->n && is_option(&words->list[at]) && !field_is(&words->list[at], "--"))
                at++;
        for (at += at == 0; at < words->n; at++)
                if (field_is(&words->list[at], "-1"))
                        bash_report(sh, FACT_SIGNAL, "-1", 2, run->start, run->end);
}

/* ---- files written and read ---- */

enum files { ALL, FIRST, LAST, FROM_SECOND, OF, INPLACE, OUTPUT };

static const struct { const char *name; enum files files; const char *with;
} writers[] = {
        { "tee", ALL, "" },
        { "touch", ALL, "drt" },
        { "truncate", ALL, "sr" },
        { "mkdir", ALL, "m" },
        { "rmdir", ALL, "" },
        { "rm", ALL, "" },
        { "unlink", ALL, "" },
        { "shred", ALL, "ns" },
        { "mkfifo", ALL, "m" },
        { "mknod", ALL, "m" },
        { "chmod", FROM_SECOND, "" },
        { "chown", FROM_SECOND, "" },
        { "chgrp", FROM_SECOND, "" },
        { "chattr", FROM_SECOND, "" },
        { "cp", LAST, "tS" },
        { "mv", ALL, "tS" },
        { "install", LAST, "mogtS" },
        { "ln", LAST, "tS" },
        { "link", LAST, "" },
        { "rsync", LAST, "e" },
        { "dd", OF, "" },
        { "sed", INPLACE, "ef" },
        { "perl", INPLACE, "" },
        { "sort", OUTPUT, "" },
        { "gcc", OUTPUT, "" },
        { "cc", OUTPUT, "" },
        { "g++", OUTPUT, "" },
        { "ld", OUTPUT, "" },
        { "sponge", ALL, "" },
        { "fallocate", ALL, "lo" },
        { "tar", OUTPUT, "" },
        { "unzip", OUTPUT, "" },
        { "ed", ALL, "" },
        { "ex", ALL, "" },
        { "setfacl", FROM_SECOND, "mx" },
        { "wipefs", ALL, "" },
        { "cpio", OUTPUT, "" },
        { "zip", FIRST, "bnP" },
        { "mktemp", ALL, "p" },
        { "patch", FIRST, "pidoDFrBVYz" },
        { "split", LAST, "abCln" },
        { "uniq", LAST, "fsw" },
        { "xxd", LAST, "clos" },
};

static void write_field(struct shell *sh, const struct run *run, const struct field *word)
{
        bash_writes(sh, word, run->start, run->end);
}

static void write_operands(struct shell *sh, const struct run *run, enum files files, const char *with)
{
        const struct field *last = NULL;
        size_t operands = 0;
        bool options = true, target = false, many = files == LAST;
        for (size_t i = 1; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                if (options && field_is(word, "--")) {
                        options = false;
                } else if (options && is_option(word) && files != FROM_SECOND) {
                        char letter = word->text[1] == '-' ? 0 : word->text[word->len - 1];
                        const char *folder = field_begins(word, "--target-directory=") ? word->text + 19 : NULL;
                        if (letter == 't' && strchr(with, 't') && many && i + 1 < run->words.n)
                                folder = run->words.list[i + 1].text;
                        if (folder) {
                                struct field to = bash_field(sh, folder, strlen(folder));
                                write_field(sh, run, &to);
                                target = true;
                        }
                        i += letter && strchr(with, letter) != NULL;
                } else if (options && is_option(word)) {
                        operands += strchr("rwxst=+", word->text[1]) != NULL;
                } else {
                        operands++;
                        last = word;
                        if (files == ALL || (files == FROM_SECOND && operands > 1) || (files == FIRST && operands == 1))
                                write_field(sh, run, word);
                }
        }
        if (files == LAST && last && !target && operands > 1)
                write_field(sh, run, last);
}

/* sed -i SCRIPT FILE…, perl -i -e … FILE… */
static void write_inplace(struct shell *sh, const struct run *run)
{
        bool inplace = false, code = field_begins(&run->words.list[0], "perl");
        for (size_t i = 1; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                bool row = is_option(word) && word->text[1] != '-';
                inplace = inplace || field_begins(word, "--in-place") || (row && memchr(word->text, 'i', word->len));
        }
        for (size_t i = 1; inplace && i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                char letter = is_option(word) && word->text[1] != '-' ? word->text[word->len - 1] : 0;
                if (is_option(word)) {
                        bool here = letter == 'e' || letter == 'E' || letter == 'f' || field_is(word, "--expression") ||
                                field_is(word, "--file");
                        code = code || here || field_begins(word, "--expression=") || field_begins(word, "--file=") ||
                                field_begins(word, "-e");
                        i += here && !(letter == 'E' && !field_begins(&run->words.list[0], "perl"));
                } else if (!code) {
                        code = true;
                } else if (word->text[0] == '/') {
                        write_field(sh, run, word);
                }
        }
}

/* Whether tar makes or changes an archive; *ret_file is the word with its name: FILE or --file=FILE. */
static bool archive_made(const struct run *run, const struct field **ret_file)
{
        bool creates = false;
        *ret_file = NULL;
        for (size_t i = 1; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                bool old = i == 1 && word->len && word->text[0] != '-',
                     row = old || (is_option(word) && word->text[1] != '-');
                const char *letter = row ? memchr(word->text, 'f', word->len) : NULL;
                creates = creates || (row && strpbrk(word->text, "cru"));
                creates = creates || field_is(word, "--create") || field_is(word, "--append") ||
                        field_is(word, "--update");
                if ((letter && !letter[1]) || field_is(word, "--file") || (old && letter))
                        *ret_file = i + 1 < run->words.n ? &run->words.list[i + 1] : NULL;
                else if (field_begins(word, "--file="))
                        *ret_file = word;
                /* -C FOLDER: its letters are no operations. */
                i += row && !old && strchr("fCTXbI", word->text[word->len - 1]) != NULL;
        }
        return creates;
}

static void write_archive(struct shell *sh, const struct run *run)
{
        const struct field *file;
        if (!archive_made(run, &file) || !file)
                return;
        struct field to = field_begins(file, "--file=") ? bash_field(sh, file->text + 7, file->len - 7) : *file;
        write_field(sh, run, &to);
}

static void write_option(struct shell *sh, const struct run *run, const char *name)
{
        bool tar = strcmp(name, "tar") == 0 || strcmp(name, "cpio") == 0, zip = strcmp(name, "unzip") == 0;
        const struct field *archive;
        const bool creates = strcmp(name, "tar") == 0 && archive_made(run, &archive);
        for (size_t i = 1; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                const char *option = tar ? "-C" : zip ? "-d" : "-o", *second = tar ? "--directory=" : "--output=";
                struct field file = { 0 };
                if (field_is(word, option) || (tar && (field_is(word, "--directory") || field_is(word, "-D"))))
                        file = i + 1 < run->words.n ? run->words.list[i + 1] : file;
                else if (field_begins(word, second))
                        file = bash_field(sh, word->text + strlen(second), word->len - strlen(second));
                else if (field_begins(word, option) && word->len > 2)
                        file = bash_field(sh, word->text + 2, word->len - 2);
                /* tar -C /etc -c reads there. */
                if (file.len && !creates)
                        write_field(sh, run, &file);
        }
}

/* git clone URL FOLDER */
static void write_clone(struct shell *sh, const struct run *run)
{
        static const char values[] =
                " -b -o -u -c -j --branch --origin --upload-pack --config --jobs --depth --reference --template --separate-git-dir --filter ";
        size_t operands = 0;
        const struct field *last = NULL;
        for (size_t i = 1; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                if (is_option(word)) {
                        i += strstr(values, arena_text(sh->arena, " %s ", word->text)) != NULL;
                        continue;
                }
                if (!operands && !field_is(word, "clone"))
                        return;
                operands++;
                last = word;
        }
        if (operands > 2)
                write_field(sh, run, last);
}

static const struct { const char *name, *option, *second; bool writes;
} file_options[] = {
        { "xargs", "-a", "--arg-file", false },
        { "grep", "-f", "--file", false },
        { "tar", "-T", "--files-from", false },
        { "find", "-fprint", "-fprint0", true },
        { "find", "-fprintf", "-fls", true },
        { "mktemp", "-p", "--tmpdir", true },
        { "patch", "-o", "--output", true },
        { "patch", "-d", "--directory", true },
        { "shuf", "-o", "--output", true },
        { "iconv", "-o", "--output", true },
        { "gpg", "-o", "--output", true },
        { "openssl", "-out", "-keyout", true },
        { "csplit", "-f", "--prefix", true },
        { "unzip", "-d", "-d", true },
        { "bsdtar", "-f", "--file", true },
};

/* Options with a file as their value. */
static void option_files(struct shell *sh, const struct run *run, const char *name)
{
        for (size_t k = 0; k < ARRAY_LEN(file_options); k++)
                for (size_t i = 1; strcmp(file_options[k].name, name) == 0 && i < run->words.n; i++) {
                        const struct field *word = &run->words.list[i];
                        size_t len = strlen(file_options[k].second);
                        struct field file = { 0 };
                        if (field_is(word, file_options[k].option) || field_is(word, file_options[k].second))
                                file = i + 1 < run->words.n ? run->words.list[i + 1] : file;
                        else if (field_begins(word, file_options[k].second) && word->len > len &&
                                word->text[len] == '=')
                                file = bash_field(sh, word->text + len + 1, word->len - len - 1);
                        else if (strlen(file_options[k].option) == 2 && field_begins(word, file_options[k].option))
                                file = bash_field(sh, word->text + 2, word->len - 2);
                        if (file.len)
                                (file_options[k].writes ? bash_writes : bash_reads)(sh, &file, run->start, run->end);
                }
}

/* ---- files in the code of sed ---- */

#define SED_LIST_MAX 300       /* [...] */

/* The place behind the part up to `delimiter`. */
static size_t sed_part(const char *text, size_t len, size_t at, char delimiter)
{
        for (; at < len && text[at] != delimiter; at++) {
                if (text[at] == '\\')
                        at++;
                else if (text[at] == '[' && delimiter == '/') {
                        size_t stop = len - at < SED_LIST_MAX ? len : at + SED_LIST_MAX,
                               end = at + 1 + (text[at + 1] == '^');
                        for (end += end < stop && text[end] == ']';
                                end < stop && text[end] != ']' && text[end] != '\n';)
                                end++;
                        at = end < stop && text[end] == ']' ? end : at;
                }
        }
        return at < len ? at + 1 : len;
}

static size_t sed_address(const char *text, size_t len, size_t at)
{
        while (at < len && strchr(" \t\n;{}0123456789$,~+!/\\", text[at])) {
                if (text[at] == '\\' && at + 1 < len)
                        at = sed_part(text, len, at + 2, text[at + 1]);
                else if (text[at] == '/')
                        at = sed_part(text, len, at + 1, '/') + strspn(text + sed_part(text, len, at + 1, '/'), "IM");
                else
                        at++;
        }
        return at;
}

/* w FILE, s/…/…/w FILE, r FILE */
static void sed_code(struct shell *sh, const struct run *run, const char *text, size_t len)
{
        if (memchr(text, 0, len))
                return;
        for (size_t at = 0; at < len;) {
                at = sed_address(text, len, at);
                if (at >= len)
                        return;
                char verb = text[at++];
                if ((verb == 's' || verb == 'y') && at < len) {
                        char delimiter = text[at];
                        at = sed_part(text, len, sed_part(text, len, at + 1, delimiter), delimiter);
                        at += verb == 's' ? strspn(text + at, "gpiIeEmM0123456789") : 0;
                        verb = verb == 's' && at < len && text[at] == 'w' ? 'w' : 's';
                        at += verb == 'w';
                }
                if (!strchr("wWrRaicbtT:#", verb))
                        continue;
                size_t from = at + strspn(text + at, " \t");
                const char *ends = strchr("btT:", verb) ? ";\n}" : "\n";
                while (at < len && !strchr(ends, text[at]))
                        at += 1 + (strchr("aic", verb) && text[at] == '\\' && at + 1 < len);
                struct field file = bash_field(sh, text + from, at > from ? at - from : 0);
                if (verb == 'w' || verb == 'W')
                        bash_writes(sh, &file, run->start, run->end);
                else if (verb == 'r' || verb == 'R')
                        bash_reads(sh, &file, run->start, run->end);
        }
}

static void sed(struct shell *sh, const struct run *run)
{
        bool code = false;
        size_t operand = 0;
        for (size_t i = 1; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                char letter = is_option(word) && word->text[1] != '-' ? word->text[word->len - 1] : 0;
                bool next = letter == 'e' || field_is(word, "--expression");
                if (next && i + 1 < run->words.n)
                        i++, sed_code(sh, run, run->words.list[i].text, run->words.list[i].len);
                else if (field_begins(word, "--expression="))
                        sed_code(sh, run, word->text + 13, word->len - 13);
                else if (field_begins(word, "-e"))
                        sed_code(sh, run, word->text + 2, word->len - 2);
                else if (!is_option(word) && !operand)
                        operand = i;
                code = code || next || letter == 'f' || field_begins(word, "--expression=") ||
                        field_begins(word, "--file") || field_begins(word, "-e");
                i += letter == 'f' || field_is(word, "--file");
        }
        if (operand && !code)
                sed_code(sh, run, run->words.list[operand].text, run->words.list[operand].len);
}

static void writes(struct shell *sh, const struct run *run, const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(writers); i++) {
                if (strcmp(writers[i].name, name) != 0)
                        continue;
                switch (writers[i].files) {
                case INPLACE: write_inplace(sh, run); break;
                case OUTPUT: write_option(sh, run, name); break;
                case OF:
                        for (size_t k = 1; k < run->words.n; k++)
                                if (field_begins(&run->words.list[k], "of=")) {
                                        struct field file =
                                                bash_field(sh, run->words.list[k].text + 3, run->words.list[k].len - 3);
                                        write_field(sh, run, &file);
                                }
                        break;
                default: write_operands(sh, run, writers[i].files, writers[i].with); break;
                }
        }
}

/* Commands with operands as input files; with a *, the first operand is something else. */
static const char readers[] =
        " cat tac head tail less more most nl od xxd hexdump strings base64 base32 basenc cut sort uniq wc rev fold fmt pr expand unexpand column paste"
        " join comm diff sdiff cmp cp mv ln install rsync tar zip gzip bzip2 xz zstd md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum"
        " sum vi vim nano ed ex view emacs tee split csplit dd source . bat shuf iconv openssl gpg hd unshadow john mapfile curl"
        " *grep *egrep *fgrep *rg *sed *awk *gawk *mawk *nawk *jq *perl *python3 *python *xargs *look ";

static void reads(struct shell *sh, const struct run *run, const char *name)
{
        char *plain = arena_text(sh->arena, " %s ", name), *second = arena_text(sh->arena, " *%s ", name);
        bool skip = strlen(name) < 20 && strstr(readers, second);
        if (strcmp(name, "getent") == 0 && run->words.n > 1 &&
                (field_is(&run->words.list[1], "shadow") || field_is(&run->words.list[1], "gshadow")))
                bash_report(sh, FACT_READ, "/etc/shadow", 11, run->start, run->end);
        if (!skip && !(strlen(name) < 20 && strstr(readers, plain)))
                return;
        for (size_t i = 1; i < run->words.n; i++) {
                struct field word = run->words.list[i];
                if (is_option(&word)) {
                        /* grep -e PATTERN, -f FILE: the pattern is not the first operand then. */
                        if (skip && (field_is(&word, "-e") || field_is(&word, "-f") || field_is(&word, "--regexp")))
                                skip = false, i++;
                        if (skip && (field_is(&word, "-F") || field_is(&word, "-v")) && strstr(name, "awk"))
                                i++;
                        continue;
                }
                if (skip) {
                        skip = false;
                        continue;
                }
                if (field_begins(&word, "if="))
                        word.text += 3, word.len -= 3;
                bash_reads(sh, &word, run->start, run->end);
        }
}

void bash_effects(struct shell *sh, const struct run *run, const char *name)
{
        if (strcmp(name, "rm") == 0)
                rm(sh, run);
        else if (strcmp(name, "find") == 0)
                find_delete(sh, run);
        else if (strcmp(name, "kill") == 0)
                kill(sh, run);
        else if (strcmp(name, "chmod") == 0 || strcmp(name, "install") == 0 || strcmp(name, "mkdir") == 0 ||
                strcmp(name, "mknod") == 0)
                rights(sh, run, name);
        else if (strcmp(name, "tar") == 0)
                write_archive(sh, run);
        else if (strcmp(name, "git") == 0)
                write_clone(sh, run);
        else if (strcmp(name, "sed") == 0)
                sed(sh, run);
        option_files(sh, run, name);
        writes(sh, run, name);
        reads(sh, run, name);
}
