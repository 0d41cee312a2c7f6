/* caissond(8): options and settings, and nothing else.  See front/daemon/daemon.c. */
#include "backend/docker/docker.h"
#include "backend/e2b.h"
#include "front/views/views.h"

#include <getopt.h>
#include <malloc.h>
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

/*
 * mallopt(3): a long buffer is a mapping of its own, so realloc() moves the pages of a growing body instead of copying
 * the bytes, and free() returns the memory.  glibc raises the thresholds to 32 and 64 MiB otherwise.  The heap keeps
 * less at its end than a long buffer needs, or malloc() would take the buffer from there.
 */
static void set_up_memory(void)
{
        mallopt(M_MMAP_THRESHOLD, (int)MIB);
        mallopt(M_TRIM_THRESHOLD, (int)MIB);
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
        set_up_memory();
        backend_add(&backend_e2b);
        backend_add(&backend_docker);
        int rc = settings_load(&sources, &settings, &err);
        if (rc == 0) {
                log_set_level((enum log_level)settings.engine.log_level);
                rc = daemon_serve(&sources, &settings, &err);
        }
        int status = rc < 0 ? failed(&err) : 0;
        settings_done(&settings);
        return status;
}
