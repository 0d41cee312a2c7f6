/* caissond(8): options and settings, and nothing else.  See front/daemon/daemon.c. */
#include "backend/e2b.h"
#include "front/views/views.h"

#include <getopt.h>
#include <stdio.h>

#include "config.h"

static int usage(FILE *stream, int status)
{
        fprintf(stream, "usage: caissond [--config FILE] [--set KEY=VALUE ...] [--foreground]\n"
                        "It serves caisson run, ps, top and pool on a Unix socket; see caissond(8).\n");
        return status;
}

static int failed(const struct csn_error *err)
{
        fprintf(stderr, "caissond: %s\n", err->text);
        return csn_code_exit(err->code);
}

int main(int argc, char **argv)
{
        static const struct option options[] = { { "config", required_argument, NULL, 'c' },
                                                 { "set", required_argument, NULL, 's' },
                                                 { "foreground", no_argument, NULL, 'f' },
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
                        return puts("caissond " VERSION) < 0;
                else if (opt != 'f')
                        return usage(stderr, 64);
        }
        if (optind < argc)
                return usage(stderr, 64);

        struct settings settings;
        struct csn_error err;
        backend_add(&backend_e2b);
        int rc = settings_load(&sources, &settings, &err);
        if (rc == 0) {
                log_set_level((enum log_level)settings.engine.log_level);
                rc = daemon_serve(&sources, &settings, &err);
        }
        int status = rc < 0 ? failed(&err) : 0;
        settings_done(&settings);
        return status;
}
