/* caisson gateway: options and settings, and nothing else.  See gateway/serve.c. */
#include "gateway/gateway.h"

#include <getopt.h>
#include <stdio.h>

#include "config.h"

static int usage(FILE *stream, int status)
{
        fprintf(stream, "usage: caisson gateway [--config FILE] [--set KEY=VALUE ...]\n"
                        "One address for many caissonds; see caisson-gateway(8).\n");
        return status;
}

int main(int argc, char **argv)
{
        static const struct option options[] = { { "config", required_argument, NULL, 'c' },
                                                 { "set", required_argument, NULL, 's' },
                                                 { "help", no_argument, NULL, 'h' },
                                                 { "version", no_argument, NULL, 'V' },
                                                 { 0 } };
        const char *flags[64] = { NULL };
        size_t flags_n = 0;
        struct settings_sources sources = { .flags = flags, .env = environ };
        for (int opt; (opt = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                if (opt == 'c')
                        sources.file = optarg;
                else if (opt == 's' && flags_n + 1 < ARRAY_LEN(flags))
                        flags[flags_n++] = optarg;
                else if (opt == 'h')
                        return usage(stdout, 0);
                else if (opt == 'V')
                        return puts("caisson-gateway " VERSION) < 0;
                else
                        return usage(stderr, 64);
        }
        if (optind < argc)
                return usage(stderr, 64);

        struct settings settings;
        struct csn_error err;
        int rc = settings_load(&sources, &settings, &err);
        if (rc == 0) {
                log_set_level((enum log_level)settings.engine.log_level);
                log_set_format((enum log_format)settings.engine.log_format);
                rc = gateway_serve(&settings, &err);
        }
        if (rc < 0)
                fprintf(stderr, "caisson gateway: %s\n", err.text);
        settings_done(&settings);
        return rc < 0 ? csn_code_exit(err.code) : 0;
}
