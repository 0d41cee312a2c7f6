/* "Did you mean": the nearest of the known words; and lists of words for options. */
#include "front/cli/toolkit/toolkit.h"

/* Each list has its `choices`, shared by help, completion and suggestions. */
#define CHOICES(of) const struct choices choices_##of = { #of, of##_words, ARRAY_LEN(of##_words) }

static const struct choice transports_words[] = {
        { "auto", 0, "by way of the daemon where one can" },
        { "never", 0, "without it" },
        { "always", 0, "by way of it, or not at all" },
};
static const struct choice definitions_words[] = {
        { "text", 0, "" }, { "openai", 0, "" }, { "anthropic", 0, "" }, { "mcp", 0, "" },
};
static const struct choice levels_words[] = {
        { "error", 0, "" }, { "warn", 0, "" }, { "info", 0, "" }, { "debug", 0, "" },
};
CHOICES(transports);
CHOICES(definitions);
CHOICES(levels);

static size_t least(size_t a, size_t b)
{
        return a < b ? a : b;
}

void cli_guess(struct cli_guess *guess, const char *word)
{
        size_t len = strlen(guess->typed), far = text_distance(guess->typed, len, word, strlen(word));
        /*
         * A third of the typed letters may be wrong.  A word beginning with the typed text, or the reverse, is nearer.
         */
        if (len >= 3 && (strncmp(word, guess->typed, len) == 0 || strncmp(word, guess->typed, strlen(word)) == 0))
                far = least(far, 1);
        if (far <= len / 3 + (len < 3) && (!guess->best || far < guess->far)) {
                guess->best = word;
                guess->far = far;
        }
}

const char *cli_guess_text(const struct cli_guess *guess, const char *dashes, char *text, size_t size)
{
        snprintf(text, size, guess->best ? " (did you mean %s%s?)" : "", dashes, guess->best);
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
                len += (size_t)snprintf(text + len, size - len, "%s%s",
                        i == 0                        ? ""
                                : i + 1 == choices->n ? last
                                                      : between,
                        choices->values[i].text);
}
