/* Options of a command line: getopt_long(3) over a table, flags, and errors that name the option. */
#include "front/cli/toolkit/toolkit.h"

#include <inttypes.h>
#include <strings.h>

#define OPTIONS_MAX 127        /* of a command */
#define NAME_MAX_SHOWN 40      /* letters of an option in an error */

const struct cli_option cli_json_options[] = {
        { "json", 0, NULL, "Print JSON.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

/* ---- errors ---- */

static const struct option *option_of(const struct option *longs, int value)
{
        while (longs->name && longs->val != value)
                longs++;
        return longs->name ? longs : NULL;
}

/* --t, where there are --timeout and --tmp. */
static int is_ambiguous(const char *who, const char *name, size_t len, const struct option *longs,
        struct csn_error *err)
{
        char found[200] = "";
        size_t n = 0, at = 0;
        for (; longs->name; longs++)
                if (strncmp(longs->name, name, len) == 0 && at < sizeof found) {
                        at += (size_t)snprintf(found + at, sizeof found - at, "%s--%s", n++ ? ", " : "", longs->name);
                }
        return n < 2 ? 0
                     : err_field(err, "", "%s: --%.*s is the beginning of %s; write one of them", who, (int)len, name,
                               found);
}

int cli_bad_option(const char *who, int opt, char *const *argv, const struct option *longs, struct csn_error *err)
{
        const char *word = optind > 0 && argv[optind - 1] ? argv[optind - 1] : "";
        const struct option *known = optopt ? option_of(longs, optopt) : NULL;
        char name[NAME_MAX_SHOWN + 3], text[80], help[40];
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
        return err_field(err, "", "%s: there is no option --%s%s; see %s", who, name,
                cli_guess_text(&guess, "--", text, sizeof text), help);
}

int cli_unknown_argument(const char *name, const struct cli_option *options, const char *typed)
{
        struct cli_guess guess = { .typed = typed };
        char text[80];
        if (typed[0] != '-')
                guess.typed = "";
        else
                guess.typed += strspn(typed, "-");
        for (; guess.typed[0] && options && options->name; options++)
                cli_guess(&guess, options->name);
        fprintf(stderr, "caisson: %s: unknown argument %.40s%s; see caisson help %s\n", name, typed,
                cli_guess_text(&guess, "--", text, sizeof text), name);
        return 64;
}

/* ---- values ---- */

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

int cli_parse_number(const char *name, const char *value, uint64_t min, uint64_t max, uint64_t *ret,
        struct csn_error *err)
{
        char *end;
        errno = 0;
        unsigned long long number = strtoull(value, &end, 10);
        if (value[0] < '0' || value[0] > '9' || *end || errno || number < min || number > max)
                return err_field(err, name, "--%s is \"%.60s\"; it has to be a number from %" PRIu64 " to %" PRIu64,
                        name, value, min, max);
        *ret = number;
        return 0;
}

/* ---- argv ---- */

int cli_parse(const struct cli_option *options, int argc, char **argv,
        int (*take)(void *owner, const char *name, const char *value, struct csn_error *err), void *owner,
        struct csn_error *err)
{
        struct option longs[OPTIONS_MAX + 1] = { { 0 } };
        char shorts[2 * OPTIONS_MAX + 1] = ":";   /* getopt(3): a missing value is told from an unknown option */
        for (int i = 0; i < OPTIONS_MAX && options[i].name; i++) {
                longs[i] = (struct option){ options[i].name, options[i].argument ? required_argument : no_argument,
                        NULL, 256 + i };
                if (options[i].letter)
                        snprintf(shorts + strlen(shorts), sizeof shorts - strlen(shorts), "%c%s", options[i].letter,
                                options[i].argument ? ":" : "");
        }
        char who[40];
        snprintf(who, sizeof who, "%s", argv[0]);
        optind = 0;
        opterr = 0;
        for (int opt; (opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
                int i = opt - 256;
                if (opt == '?' || opt == ':')
                        return cli_bad_option(who, opt, argv, longs, err);
                for (int k = 0; i < 0 && options[k].name; k++)
                        if (options[k].letter == opt)
                                i = k;
                int rc = cli_check_word(&options[i], optarg, err);
                rc = rc < 0 ? rc : take(owner, options[i].name, optarg, err);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

bool cli_has_flag(int *argc, char **argv, const char *flag)
{
        for (int i = 1; i < *argc; i++)
                if (strcmp(argv[i], flag) == 0) {
                        memmove(argv + i, argv + i + 1, (size_t)(*argc - i) * sizeof *argv);
                        (*argc)--;
                        return true;
                }
        return false;
}
