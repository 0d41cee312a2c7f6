/* Completion for bash, zsh and fish, written from the same tables as the help. */
#include "front/cli/cli.h"

static bool is_of(const struct cli_part *part, const char *command)
{
        return strcmp(part->command, command) == 0;
}

static void print_parts(const char *command)
{
        const char *before = "";
        for (const struct cli_part *part = cli_parts; part->name; part++)
                if (is_of(part, command)) {
                        printf("%s%s", before, part->name);
                        before = " ";
                }
}

/* Every option of a part of sandbox and context, with its dashes. */
static void print_part_options(const struct cli_part *part)
{
        struct cli_field fields[64];
        size_t n = part->objects ? cli_fields_of(part->objects, fields, ARRAY_LEN(fields)) : 0;
        for (const struct cli_option *option = part->options; option && option->name; option++)
                printf("--%s ", option->name);
        for (size_t i = 0; i < n; i++)
                printf("--%s ", fields[i].field->option);
        printf("--config --set");
}

/* Every option of a command, with its dashes, separated by blanks. */
static void print_options(const struct cli_command *command)
{
        struct cli_field fields[64];
        size_t n = command->objects ? cli_fields_of(command->objects, fields, ARRAY_LEN(fields)) : 0;
        for (const struct cli_option *option = command->options; option->name; option++)
                printf("--%s ", option->name);
        for (size_t i = 0; i < n; i++)
                printf("--%s ", fields[i].field->option);
        printf("--config --set");
}

static void print_commands(const struct cli_command *commands)
{
        for (const struct cli_command *command = commands; command->name; command++)
                printf("%s%s", command == commands ? "" : " ", command->name);
}

static void print_languages(void)
{
        for (size_t i = 0; lang_at(i); i++)
                printf("%s%s", i ? " " : "", lang_at(i)->name);
}

/* Options with words known only at the time of completion. */
static const struct { const char *option, *command; } asked[] = {
        { "profile", "caisson profiles list" }, { "policy", "caisson policy list" },
        { "image", "caisson image list 2>/dev/null | sed 1d" },
};

static const char *asked_of(const char *option)
{
        for (size_t i = 0; i < ARRAY_LEN(asked); i++)
                if (strcmp(asked[i].option, option) == 0)
                        return asked[i].command;
        return NULL;
}

/* The words of an option, separated by blanks; or "". */
static const char *words_of(const char *option, const struct choices *choices, char *words, size_t size)
{
        size_t len = 0;
        words[0] = 0;
        /* Beside the names of images the field takes a few words. */
        if (!choices && strcmp(option, "image") == 0)
                choices = &choices_image;
        if (choices)
                cli_print_words(choices, " ", " ", words, size);
        for (size_t i = 0; !choices && strcmp(option, "language") == 0 && lang_at(i) && len < size; i++)
                len += (size_t)snprintf(words + len, size - len, "%s%s", i ? " " : "", lang_at(i)->name);
        return words;
}

/* A line of a bash `case` for an option with a choice of words; head: the command before the option. */
static void bash_words(const char *head, const char *name, const struct choices *choices)
{
        char words[400];
        const bool is_image = strcmp(name, "image") == 0;
        if (!choices && !is_image)
                return;
        printf("                \"%s --%s\") mapfile -t COMPREPLY < <(compgen -W \"%s", head, name,
                words_of(name, choices, words, sizeof words));
        if (is_image)
                printf(" $(%s | cut -d' ' -f1)", asked_of(name));
        printf("\" -- \"$word\"); return ;;\n");
}

static void bash_words_of(const char *head, const struct cli_option *options, const struct object *const *objects)
{
        struct cli_field fields[64];
        size_t n = objects ? cli_fields_of(objects, fields, ARRAY_LEN(fields)) : 0;
        for (; options && options->name; options++)
                bash_words(head, options->name, options->choices);
        for (size_t i = 0; i < n; i++)
                bash_words(head, fields[i].field->option, fields[i].field->choices);
}

static void bash_all_words(const struct cli_command *commands)
{
        char head[60];
        printf("        case \"${COMP_WORDS[1]} $before\" in\n");
        for (const struct cli_command *command = commands; command->name; command++)
                bash_words_of(command->name, command->options, command->objects);
        printf("        esac\n        case \"${COMP_WORDS[1]} ${COMP_WORDS[2]} $before\" in\n");
        for (const struct cli_part *part = cli_parts; part->name; part++) {
                snprintf(head, sizeof head, "%s %s", part->command, part->name);
                bash_words_of(head, part->options, part->objects);
        }
        printf("        esac\n");
}

/* The word behind sandbox or context, then options, or ids known to the daemon. */
static void bash_parts(const char *command)
{
        printf("        if [[ ${COMP_WORDS[1]} == %s ]]; then\n"
               "                if ((COMP_CWORD == 2)); then mapfile -t COMPREPLY < <(compgen -W \"", command);
        print_parts(command);
        printf("\" -- \"$word\"); return; fi\n"
               "                case ${COMP_WORDS[2]}$word in\n");
        for (const struct cli_part *part = cli_parts; part->name; part++)
                if (is_of(part, command)) {
                        printf("                        %s-*) mapfile -t COMPREPLY < <(compgen -W \"", part->name);
                        print_part_options(part);
                        printf("\" -- \"$word\") ;;\n");
                }
        printf("                        *) mapfile -t COMPREPLY < <(compgen -W \"$(caisson sandbox list 2>/dev/null | sed 1d | cut -d' ' -f1)%s\" "
               "-- \"$word\"; compgen -f -- \"$word\") ;;\n"
               "                esac\n"
               "                return\n        fi\n",
                strcmp(command, "context") == 0 ? " $(caisson context list 2>/dev/null | sed 1d | cut -d' ' -f1)" : "");
}

static void bash(const struct cli_command *commands)
{
        printf("# bash completion for caisson; made by: caisson completion bash\n"
               "_caisson()\n{\n"
               "        local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
               "        if ((COMP_CWORD == 1)); then\n"
               "                mapfile -t COMPREPLY < <(compgen -W \"");
        print_commands(commands);
        printf("\" -- \"$word\")\n                return\n        fi\n");
        bash_all_words(commands);
        bash_parts("sandbox");
        bash_parts("context");
        bash_parts("tools");
        bash_parts("layers");
        bash_parts("image");
        bash_parts("volume");
        printf("        case $before in\n"
               "                show) [[ ${COMP_WORDS[1]} != runs ]] || return ;;&\n"
               "                -l|--language) mapfile -t COMPREPLY < <(compgen -W \"");
        print_languages();
        printf("\" -- \"$word\"); return ;;\n"
               "                --policy|show|test) [[ $before == show && ${COMP_WORDS[1]} != policy ]] || {\n"
               "                        mapfile -t COMPREPLY < <(compgen -W \"$(caisson policy list 2>/dev/null | "
               "cut -d' ' -f1)\" -- \"$word\"); return\n"
               "                } ;;&\n"
               "                --profile|show|explain) mapfile -t COMPREPLY < <(compgen -W \"$(caisson profiles list 2>/dev/null | "
               "cut -d' ' -f1)\" -- \"$word\"); return ;;\n"
               "                completion) mapfile -t COMPREPLY < <(compgen -W \"bash zsh fish\" -- \"$word\"); return ;;\n"
               "                profiles) mapfile -t COMPREPLY < <(compgen -W \"list show explain\" -- \"$word\"); return ;;\n"
               "                runs) [[ $word == -* ]] || { mapfile -t COMPREPLY < <(compgen -W \"show\" -- \"$word\"); return; } ;;\n"
               "                keys) mapfile -t COMPREPLY < <(compgen -W \"create list revoke\" -- \"$word\"); return ;;\n"
               "                revoke) mapfile -t COMPREPLY < <(compgen -W \"$(caisson keys list 2>/dev/null | "
               "sed 1d | cut -d' ' -f1)\" -- \"$word\"); return ;;\n"
               "                policy) mapfile -t COMPREPLY < <(compgen -W \"list show test\" -- \"$word\"); return ;;\n"
               "                schema) mapfile -t COMPREPLY < <(compgen -W \"request result limits boundary\" -- \"$word\"); "
               "return ;;\n"
               "        esac\n"
               "        case ${COMP_WORDS[1]}$word in\n");
        for (const struct cli_command *command = commands; command->name; command++) {
                if (!command->options)
                        continue;
                printf("                %s-*) mapfile -t COMPREPLY < <(compgen -W \"", command->name);
                print_options(command);
                printf("\" -- \"$word\") ;;\n");
        }
        printf("                *) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
               "        esac\n"
               "}\n"
               "complete -o filenames -F _caisson caisson\n");
}

/* Descriptions stand in single quotes in both other shells; a quote in a description would end the text. */
static void print_quoted(const char *text)
{
        for (; *text; text++)
                if (*text == '\'')
                        printf("'\\''");
                else if (*text == '[' || *text == ']' || *text == ':')
                        putchar(' ');
                else
                        putchar(*text);
}

static void print_zsh_option(const char *name, const char *text, bool value, const struct choices *choices)
{
        char words[400];
        printf("                '--%s%s[", name, value ? "=" : "");
        print_quoted(text);
        printf("]");
        const char *known = words_of(name, choices, words, sizeof words), *lists = asked_of(name);
        if (value && lists)
                printf(":value:(%s%s$(%s 2>/dev/null | cut -d\" \" -f1))", known, known[0] ? " " : "", lists);
        else if (value && known[0])
                printf(":value:(%s)", known);
        else if (value)
                printf(":value:_files");
        printf("' \\\n");
}

static void print_zsh_options(const struct cli_command *command)
{
        struct cli_field fields[64];
        size_t n = command->objects ? cli_fields_of(command->objects, fields, ARRAY_LEN(fields)) : 0;
        printf("        %s) _arguments \\\n", command->name);
        for (const struct cli_option *option = command->options; option->name; option++)
                print_zsh_option(option->name, option->text, option->argument, option->choices);
        for (size_t i = 0; i < n; i++)
                print_zsh_option(fields[i].field->option, cli_field_text(fields[i].field),
                        fields[i].field->kind != KIND_BOOL, fields[i].field->choices);
        printf("                '*:file:_files' ;;\n");
}

static void zsh_parts(const char *command)
{
        printf("        if [[ ${words[2]} == %s ]] && ((CURRENT == 3)); then\n                _values command ",
                command);
        print_parts(command);
        printf("\n                return\n        fi\n"
               "        if [[ ${words[2]} == %s ]]; then\n"
               "                local -a ids=(${(f)\"$(caisson %s list 2>/dev/null | sed 1d | cut -d' ' -f1)\"})\n"
               "                case ${words[3]} in\n", command, command);
        for (const struct cli_part *part = cli_parts; part->name; part++) {
                struct cli_field fields[64];
                size_t n = part->objects ? cli_fields_of(part->objects, fields, ARRAY_LEN(fields)) : 0;
                if (!is_of(part, command))
                        continue;
                printf("                %s) _arguments \\\n", part->name);
                for (const struct cli_option *option = part->options; option && option->name; option++)
                        print_zsh_option(option->name, option->text, option->argument, option->choices);
                for (size_t i = 0; i < n; i++)
                        print_zsh_option(fields[i].field->option, cli_field_text(fields[i].field),
                                fields[i].field->kind != KIND_BOOL, fields[i].field->choices);
                printf("                '*:id:($ids)' ;;\n");
        }
        printf("                esac\n                return\n        fi\n");
}

static void zsh(const struct cli_command *commands)
{
        printf("#compdef caisson\n# made by: caisson completion zsh\n"
               "_caisson()\n{\n"
               "        local -a commands=(\n");
        for (const struct cli_command *command = commands; command->name; command++) {
                printf("                '%s:", command->name);
                print_quoted(command->text);
                printf("'\n");
        }
        printf("        )\n"
               "        if ((CURRENT == 2)); then\n                _describe command commands\n                return\n        fi\n");
        zsh_parts("sandbox");
        zsh_parts("context");
        zsh_parts("tools");
        zsh_parts("layers");
        zsh_parts("image");
        zsh_parts("volume");
        printf("        if [[ ${words[2]} == keys ]] && ((CURRENT == 3)); then\n"
               "                _values command create list revoke\n                return\n        fi\n"
               "        case ${words[2]} in\n");
        for (const struct cli_command *command = commands; command->name; command++)
                if (command->options)
                        print_zsh_options(command);
        printf("        profiles) _values command list show explain ;;\n"
               "        policy) _values command list show test ;;\n"
               "        completion) _values shell bash zsh fish ;;\n"
               "        schema) _values name request result limits boundary ;;\n"
               "        esac\n"
               "}\n"
               "_caisson \"$@\"\n");
}

static void print_fish_option(const char *command, const char *name, const char *text, bool value,
        const struct choices *choices)
{
        char words[400];
        printf("complete -c caisson -n '__fish_seen_subcommand_from %s' -l %s %s", command, name, value ? "-r " : "");
        const char *known = words_of(name, choices, words, sizeof words), *lists = asked_of(name);
        if (value && lists)
                printf("-f -a '%s%s(%s 2>/dev/null | string split -f1 \" \")' ", known, known[0] ? " " : "", lists);
        else if (value && known[0])
                printf("-f -a '%s' ", known);
        printf("-d '");
        print_quoted(text);
        printf("'\n");
}

/* The options of a part follow its command and its name. */
static void fish_part(const struct cli_part *part)
{
        struct cli_field fields[64];
        char both[60];
        size_t n = part->objects ? cli_fields_of(part->objects, fields, ARRAY_LEN(fields)) : 0;
        printf("complete -c caisson -n '__fish_seen_subcommand_from %s' -f -a %s -d '", part->command, part->name);
        print_quoted(part->text);
        printf("'\n");
        snprintf(both, sizeof both, "%s; and __fish_seen_subcommand_from %s", part->command, part->name);
        for (const struct cli_option *option = part->options; option && option->name; option++)
                print_fish_option(both, option->name, option->text, option->argument, option->choices);
        for (size_t i = 0; i < n; i++)
                print_fish_option(both, fields[i].field->option, cli_field_text(fields[i].field),
                        fields[i].field->kind != KIND_BOOL, fields[i].field->choices);
}

static void fish(const struct cli_command *commands)
{
        struct cli_field fields[64];
        printf("# made by: caisson completion fish\n");
        for (const struct cli_command *command = commands; command->name; command++) {
                printf("complete -c caisson -n __fish_use_subcommand -f -a %s -d '", command->name);
                print_quoted(command->text);
                printf("'\n");
        }
        for (const struct cli_command *command = commands; command->name; command++) {
                size_t n = command->objects ? cli_fields_of(command->objects, fields, ARRAY_LEN(fields)) : 0;
                for (const struct cli_option *option = command->options; option && option->name; option++)
                        print_fish_option(command->name, option->name, option->text, option->argument, option->choices);
                for (size_t i = 0; i < n; i++)
                        print_fish_option(command->name, fields[i].field->option, cli_field_text(fields[i].field),
                                fields[i].field->kind != KIND_BOOL, fields[i].field->choices);
        }
        for (const struct cli_part *part = cli_parts; part->name; part++)
                fish_part(part);
        printf("complete -c caisson -n '__fish_seen_subcommand_from keys' -f -a 'create list revoke'\n");
}

int cli_completion(const struct cli_command *commands, int argc, char **argv)
{
        static const struct {
                const char *shell;
                void (*print)(const struct cli_command *commands);
        } shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };
        for (size_t i = 0; argc == 2 && i < ARRAY_LEN(shells); i++)
                if (strcmp(shells[i].shell, argv[1]) == 0) {
                        shells[i].print(commands);
                        return 0;
                }
        return cli_usage_of("completion", "give a shell: bash, zsh or fish");
}
