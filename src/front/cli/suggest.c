/* "Did you mean": the nearest of the words that there are, for commands, options and an option's words; and what is wrong with an option. */
#include "front/cli/cli.h"

#include <strings.h>

#define WORD_MAX 40

/* Each with its `choices`, so that help, completion and suggestions have one list. */
#define CHOICES(of) const struct choices choices_##of = { #of, of##_words, ARRAY_LEN(of##_words) }

static const struct choice transports_words[] = {
        { "auto", 0, "by way of the daemon where one can" }, { "never", 0, "without it" }, { "always", 0, "by way of it, or not at all" },
};
static const struct choice forms_words[] = {
        { "plain", 0, "" }, { "brief", 0, "" }, { "linx", 0, "" }, { "codemie", 0, "" },
};
static const struct choice definitions_words[] = {
        { "text", 0, "" }, { "openai", 0, "" }, { "anthropic", 0, "" }, { "mcp", 0, "" },
};
static const struct choice levels_words[] = {
        { "error", 0, "" }, { "warn", 0, "" }, { "info", 0, "" }, { "debug", 0, "" },
};
CHOICES(transports);
CHOICES(forms);
CHOICES(definitions);
CHOICES(levels);

static size_t least(size_t a, size_t b)
{
        return a < b ? a : b;
}

/* How many letters were left out, added, changed or exchanged with their neighbour: optimal string alignment. */
static size_t distance(const char *one, const char *other)
{
        size_t rows[3][WORD_MAX + 2], n = strlen(one), m = strlen(other);
        if (n > WORD_MAX || m > WORD_MAX)
                return WORD_MAX;
        for (size_t k = 0; k <= m; k++)
                rows[0][k] = k;
        for (size_t i = 1; i <= n; i++) {
                size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
                row[0] = i;
                for (size_t k = 1; k <= m; k++) {
                        bool same = one[i - 1] == other[k - 1];
                        row[k] = least(least(above[k] + 1, row[k - 1] + 1), above[k - 1] + !same);
                        if (i > 1 && k > 1 && one[i - 1] == other[k - 2] && one[i - 2] == other[k - 1])
                                row[k] = least(row[k], before[k - 2] + 1);
                }
        }
        return rows[n % 3][m];
}

void cli_guess(struct cli_guess *guess, const char *word)
{
        size_t far = distance(guess->typed, word), len = strlen(guess->typed);
        /* A third of what was typed may be wrong; what begins so, or goes on so, is nearer than that. */
        if (len >= 3 && (strncmp(word, guess->typed, len) == 0 || strncmp(word, guess->typed, strlen(word)) == 0))
                far = least(far, 1);
        if (far <= len / 3 + (len < 3) && (!guess->best || far < guess->far)) {
                guess->best = word;
                guess->far = far;
        }
}

const char *cli_guess_text(const struct cli_guess *guess, const char *dashes, char *text, size_t size)
{
        snprintf(text, size, guess->best ? "; did you mean %s%s?" : "", dashes, guess->best);
        return text;
}

void cli_suggest_word(struct csn_error *err, const struct choices *choices, const char *typed)
{
        struct cli_guess guess = { .typed = typed };
        char text[80];
        size_t len = strlen(err->text);
        for (size_t i = 0; choices && i < choices->n; i++)
                cli_guess(&guess, choices->values[i].text);
        snprintf(err->text + len, sizeof err->text - len, "%s", cli_guess_text(&guess, "", text, sizeof text));
}

void cli_print_words(const struct choices *choices, const char *between, const char *last, char *text, size_t size)
{
        size_t len = 0;
        text[0] = 0;
        for (size_t i = 0; i < choices->n && len < size; i++)
                len += (size_t)snprintf(text + len, size - len, "%s%s", i == 0 ? "" : i + 1 == choices->n ? last : between, choices->values[i].text);
}

int cli_check_word(const struct cli_option *option, const char *value, struct csn_error *err)
{
        char words[400], where[64];
        if (!option->choices || !value)
                return 0;
        for (size_t i = 0; i < option->choices->n; i++)
                if (strcasecmp(option->choices->values[i].text, value) == 0)
                        return 0;
        cli_print_words(option->choices, ", ", " or ", words, sizeof words);
        snprintf(where, sizeof where, "--%s", option->name);
        err_field(err, where, "%s is \"%.40s\"; it has to be %s", where, value, words);
        cli_suggest_word(err, option->choices, value);
        return -err->code;
}

/* ---- options ---- */

static const struct option *option_of(const struct option *longs, int value)
{
        while (longs->name && longs->val != value)
                longs++;
        return longs->name ? longs : NULL;
}

/* --t, where there are --timeout and --tmp. */
static int is_ambiguous(const char *who, const char *name, size_t len, const struct option *longs, struct csn_error *err)
{
        char found[200] = "";
        size_t n = 0, at = 0;
        for (; longs->name; longs++)
                if (strncmp(longs->name, name, len) == 0 && at < sizeof found) {
                        at += (size_t)snprintf(found + at, sizeof found - at, "%s--%s", n++ ? ", " : "", longs->name);
                }
        return n < 2 ? 0 : err_field(err, "", "%s: --%.*s is the beginning of %s; write one of them", who, (int)len, name, found);
}

int cli_bad_option(const char *who, int opt, char *const *argv, const struct option *longs, struct csn_error *err)
{
        const char *word = optind > 0 && argv[optind - 1] ? argv[optind - 1] : "";
        const struct option *known = optopt ? option_of(longs, optopt) : NULL;
        char name[WORD_MAX + 3], text[80], help[40];
        struct cli_guess guess = { .typed = name };
        snprintf(help, sizeof help, "caisson help %.*s", (int)strcspn(who, " "), who);
        if (known)
                snprintf(name, sizeof name, "--%s", known->name);
        else if (optopt)
                snprintf(name, sizeof name, "-%c", optopt);
        if (opt == ':')
                return err_field(err, "", "%s: the option %s needs a value; see %s", who, name, help);
        if (known)
                return err_field(err, "", "%s: the option %s takes no value; see %s", who, name, help);
        if (optopt)
                return err_field(err, "", "%s: there is no option %s; see %s", who, name, help);
        const char *typed = word + strspn(word, "-");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(typed, "="), typed);
        if (is_ambiguous(who, name, strlen(name), longs, err) < 0)
                return -err->code;
        for (; longs->name; longs++)
                cli_guess(&guess, longs->name);
        return err_field(err, "", "%s: there is no option --%s%s; see %s", who, name, cli_guess_text(&guess, "--", text, sizeof text), help);
}

/* ---- commands ---- */

int cli_unknown_command(const char *typed)
{
        struct cli_guess guess = { .typed = typed };
        char text[80];
        for (const struct cli_command *command = cli_commands; command->name; command++)
                cli_guess(&guess, command->name);
        return cli_usage("there is no command \"%.40s\"%s", typed, cli_guess_text(&guess, "caisson ", text, sizeof text));
}

int cli_unknown_part(const char *command, const char *typed)
{
        struct cli_guess guess = { .typed = typed };
        char text[80], known[200] = "";
        size_t len = 0;
        for (const struct cli_part *part = cli_parts; part->name; part++)
                if (strcmp(part->command, command) == 0 && len < sizeof known) {
                        cli_guess(&guess, part->name);
                        len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", len ? ", " : "", part->name);
                }
        fprintf(stderr, "caisson: %s: there is no command \"%.40s\"%s; there are %s; see caisson help %s\n", command, typed,
                cli_guess_text(&guess, "", text, sizeof text), known, command);
        return 64;
}

int cli_unknown_argument(const char *name, const char *typed)
{
        const struct cli_command *command = cli_commands;
        struct cli_guess guess = { .typed = typed };
        char text[80];
        if (typed[0] != '-')
                guess.typed = "";
        else
                guess.typed += strspn(typed, "-");
        while (strcmp(command->name, name) != 0)
                command++;
        for (const struct cli_option *option = command->options; guess.typed[0] && option && option->name; option++)
                cli_guess(&guess, option->name);
        fprintf(stderr, "caisson: %s: unknown argument %.40s%s; see caisson help %s\n", name, typed, cli_guess_text(&guess, "--", text, sizeof text), name);
        return 64;
}
