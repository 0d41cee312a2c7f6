/* --config FILE and --set KEY=VALUE, which every command takes. */
#include "front/cli/toolkit/toolkit.h"

/* The value of "--name VALUE" or "--name=VALUE" at argv[i]; *ret_used arguments belong to it. */
static const char *take_value(int argc, char **argv, int i, const char *name, int *ret_used)
{
        size_t len = strlen(name);
        if (strncmp(argv[i], name, len) != 0)
                return NULL;
        if (argv[i][len] == '=') {
                *ret_used = 1;
                return argv[i] + len + 1;
        }
        if (argv[i][len] == 0 && i + 1 < argc) {
                *ret_used = 2;
                return argv[i + 1];
        }
        return NULL;
}

int cli_take_settings(int argc, char **argv, struct cli_settings *ret)
{
        int n = 0;
        *ret = (struct cli_settings){ 0 };
        for (int i = 0; i < argc && argv[i];) {
                int used = 1;
                const char *value;
                if (i + 1 == argc && (strcmp(argv[i], "--config") == 0 || strcmp(argv[i], "--set") == 0))
                        return cli_usage("the option %s needs a value", argv[i]), -1;
                if (strcmp(argv[i], "--") == 0) {
                        while (i < argc)
                                argv[n++] = argv[i++];
                        break;
                }
                if ((value = take_value(argc, argv, i, "--config", &used))) {
                        ret->file = value;
                } else if ((value = take_value(argc, argv, i, "--set", &used))) {
                        if (ret->flags_n + 1 == ARRAY_LEN(ret->flags))
                                return cli_usage("too many --set"), -1;
                        ret->flags[ret->flags_n++] = value;
                } else {
                        argv[n++] = argv[i];
                }
                i += used;
        }
        argv[n] = NULL;
        return n;
}

int cli_load_settings(const struct cli_settings *from, struct settings *ret)
{
        struct csn_error err;
        const struct settings_sources sources = { .file = from->file, .flags = from->flags, .env = environ };
        if (settings_load(&sources, ret, &err) < 0)
                return cli_fail(&err);
        log_set_level((enum log_level)ret->engine.log_level);
        for (size_t i = 0; i < ret->notes_n; i++)
                fprintf(stderr, "caisson: %s\n", ret->notes[i]);
        return 0;
}

int cli_with_settings(int argc, char **argv, int (*command)(int argc, char **argv, const struct settings *settings))
{
        struct cli_settings from;
        struct settings settings;
        argc = cli_take_settings(argc, argv, &from);
        int status = argc < 0 ? 64 : cli_load_settings(&from, &settings);
        if (status == 0)
                status = command(argc, argv, &settings);
        if (argc >= 0)
                settings_done(&settings);
        return status;
}
