/*
 * caisson help: an overview for a terminal of 24 lines and 80 columns, and for each command an example and its options.
 */
#include "front/cli/cli.h"

#define WIDTH 80

static void print_option(const char *name, char letter, const char *argument, const char *text)
{
        char left[80];
        snprintf(left, sizeof left, "  %c%c%s --%s%s%s", letter ? '-' : ' ', letter ? letter : ' ', letter ? "," : " ",
                name, argument ? " " : "", argument ? argument : "");
        printf("%-34s %s\n", left, text);
}

static const char *argument_of(const struct field *field)
{
        switch (field->kind) {
        case KIND_NUM:
                return strcmp(field->unit, "ms") == 0      ? "TIME"
                       : strcmp(field->unit, "bytes") == 0 ? "SIZE"
                       : strcmp(field->unit, "milli") == 0 ? "CORES"
                                                           : "N";
        case KIND_BOOL:
                return NULL;
        case KIND_PAIRS:
                return "NAME=VALUE";
        case KIND_ENUM:
                return "WORD";
        default:
                return strcmp(field->name, "exports") == 0  ? "GLOB:DIR"
                        : strcmp(field->name, "files") == 0 || strcmp(field->name, "modules") == 0 ? "PATH[:NAME]"
                                                            : "TEXT";
        }
}

/* The words stand before the default, which ends the line. */
static void print_with_words(const char *name, char letter, const char *argument, const char *text,
        const struct choices *choices, const char *def)
{
        char words[400] = "", line[1000];
        const char *bracket = strrchr(text, '[');
        size_t len = bracket && text[strlen(text) - 1] == ']' ? (size_t)(bracket - text) : strlen(text);
        if (choices)
                cli_print_words(choices, ", ", " or ", words, sizeof words);
        while (len && text[len - 1] == ' ')
                len--;
        snprintf(line, sizeof line, "%.*s%s%s%s%s%s%s%s%s", (int)len, text, words[0] ? " One of: " : "", words,
                words[0] ? "." : "", text[len] ? " " : "", text[len] ? bracket : "", def[0] ? " [" : "", def,
                def[0] ? "]" : "");
        print_option(name, letter, argument, line);
}

static void print_fields(const struct cli_field *fields, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const struct field *field = fields[i].field;
                char def[40] = "";
                if (field->kind == KIND_NUM)
                        model_print(field, field->def, def, sizeof def);
                print_with_words(field->option, cli_field_letter(&fields[i]), argument_of(field), cli_field_text(field),
                        field->choices, def);
        }
}

static void print_options(const struct cli_option *options, const struct object *const *objects)
{
        struct cli_field fields[64];
        for (; options && options->name; options++)
                print_with_words(options->name, options->letter, options->argument, options->text, options->choices,
                        "");
        size_t n = objects ? cli_fields_of(objects, fields, ARRAY_LEN(fields)) : 0;
        print_fields(fields, n);
}

const struct cli_command *cli_find_command(const struct cli_command *commands, const char *name)
{
        while (commands->name && strcmp(commands->name, name) != 0)
                commands++;
        return commands->name ? commands : NULL;
}

static void print_parts(const char *command)
{
        bool first = true;
        for (const struct cli_part *part = cli_parts; part->name;
                first = first && strcmp(part->command, command) != 0, part++)
                if (strcmp(part->command, command) == 0)
                        printf("%s  %-10s %-34s %s\n", first ? "\n" : "", part->name, part->arguments, part->text);
        for (const struct cli_part *part = cli_parts; part->name; part++) {
                if (strcmp(part->command, command) != 0 || (!part->options && !part->objects))
                        continue;
                printf("\nOptions of %s %s:\n", command, part->name);
                print_options(part->options, part->objects);
        }
}

static int print_command(const struct cli_command *command)
{
        printf("Example: %s\n\nUsage: caisson %s%s%s\n\n%s\n", command->example, command->name,
                command->arguments[0] ? " " : "", command->arguments, command->text);
        if (command->options) {
                printf("\nOptions of %s:\n", command->name);
                print_options(command->options, command->objects);
        }
        print_parts(command->name);
        printf("\nOptions of every command:\n");
        print_option("config", 0, "FILE", "The configuration file; see caisson.conf(5).");
        print_option("set", 0, "KEY=VALUE", "One setting; see caisson config show.");
        return 0;
}

static void print_names(const struct cli_command *commands, enum cli_group group, const char *title)
{
        const char *before = "";
        printf("  %-12s", title);
        for (const struct cli_command *command = commands; command->name; command++)
                if (command->group == group) {
                        printf("%s%s", before, command->name);
                        before = ", ";
                }
        printf("\n");
}

static int print_overview(const struct cli_command *commands)
{
        static const char *const titles[GROUPS] = {
                [GROUP_PROGRAMS] = "programs",
                [GROUP_DAEMON] = "the daemon",
                [GROUP_SETTINGS] = "settings",
                [GROUP_ABOUT] = "this tool",
        };
        printf("caisson - run code that you did not write in a closed sandbox\n\nUsage: caisson COMMAND ...\n\n");
        printf("Example: %s\n\nThe commands to begin with:\n", commands[0].example);
        for (const struct cli_command *command = commands; command->name; command++)
                if (command->group == GROUP_FIRST)
                        printf("  %-12s%.*s\n", command->name, WIDTH - 14, command->text);
        printf("\nThe others:\n");
        for (int group = GROUP_PROGRAMS; group < GROUPS; group++)
                print_names(commands, (enum cli_group)group, titles[group]);
        printf("\n  caisson help COMMAND   an example, and every option\n"
               "  man caisson            the manual; man caisson.conf has the settings\n"
               "  caisson completion     words and options by the Tab key, in bash, zsh and fish\n");
        return 0;
}

int cli_unknown_command(const struct cli_command *commands, const char *typed)
{
        struct cli_guess guess = { .typed = typed };
        char text[80];
        for (const struct cli_command *command = commands; command->name; command++)
                cli_guess(&guess, command->name);
        return cli_usage("there is no command \"%.40s\"%s", typed,
                cli_guess_text(&guess, "caisson ", text, sizeof text));
}

int cli_help(const struct cli_command *commands, int argc, char **argv)
{
        const struct cli_command *one = argc > 1 ? cli_find_command(commands, argv[1]) : NULL;
        if (argc > 1 && !one)
                return cli_unknown_command(commands, argv[1]);
        return one ? print_command(one) : print_overview(commands);
}
