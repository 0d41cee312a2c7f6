/* caisson-supervisor(8): options, and nothing else.  See supervisor/supervisor.h. */
#include "supervisor/supervisor.h"

#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "config.h"

static int usage(const char *what)
{
        fprintf(stderr,
                "caisson-supervisor: %s\n"
                "It is started by caisson and caissond, which hand it a socket as descriptor 3.\n"
                "Options: --uid-range FIRST:COUNT  --cgroup-parent PATH  --runner-dir PATH  --layers-dir PATH  --images-dir PATH  --volumes-dir PATH  --devices PATH,...\n",
                what);
        return 64;
}

static bool parse_range(const char *text, struct uid_range *ret)
{
        unsigned long first, count;
        char end;
        if (sscanf(text, "%lu:%lu%c", &first, &count, &end) != 2)
                return false;
        *ret = (struct uid_range){ .first = (uint32_t)first, .count = (uint32_t)count };
        /* Never an account of the host, and never one of the two numbers that mean "none". */
        return first >= 65536 && count >= 1 && first + count <= 0xfffffffeUL;
}

/* A socket of the right kind, and not some file that happens to be descriptor 3. */
static bool is_peer_socket(int fd)
{
        int type;
        socklen_t len = sizeof type;
        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

/* One program has many jobs, and is started as /proc/self/exe; ps(1) shall tell them apart. */
static void take_name(const char *path)
{
        const char *slash = strrchr(path, '/');
        prctl(PR_SET_NAME, slash ? slash + 1 : path);
}

int main(int argc, char **argv)
{
        if (argc > 0)
                take_name(argv[0]);
        if (argc == 2 && strcmp(argv[0], "caisson-janitor") == 0)
                return janitor_main(argv[1]);
        if (argc > 0 && strcmp(argv[0], "caisson-starter") == 0)
                return starter_main(argc, argv);
        if (argc > 0 && strcmp(argv[0], "caisson-opener") == 0)
                return opener_main(argc, argv);
        if (argc > 0 && strcmp(argv[0], "caisson-launcher") == 0)
                return launcher_main();

        static const struct option options[] = { { "uid-range", required_argument, NULL, 'u' },
                                                 { "cgroup-parent", required_argument, NULL, 'c' },
                                                 { "runner-dir", required_argument, NULL, 'r' },
                                                 { "layers-dir", required_argument, NULL, 'l' },
                                                 { "images-dir", required_argument, NULL, 'i' },
                                                 { "volumes-dir", required_argument, NULL, 'v' },
                                                 { "devices", required_argument, NULL, 'd' },
                                                 { 0 } };
        struct arena texts = { 0 };   /* init wipes our arguments, so what is needed of them is copied */
        struct supervisor_options config = { .uids = { UID_RANGE_FIRST, UID_RANGE_COUNT }, .cgroup_parent = "",
                                             .folders = { .runner_dir = RUNNER_DIR, .layers_dir = "",
                                                          .images_dir = "" },
                                             .volumes_dir = "" };
        for (int opt; (opt = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                if (opt == 'u' && !parse_range(optarg, &config.uids))
                        return usage("--uid-range wants FIRST:COUNT with FIRST at least 65536");
                if (opt == 'c')
                        config.cgroup_parent = arena_text(&texts, "%s", optarg);
                if (opt == 'r')
                        config.folders.runner_dir = arena_text(&texts, "%s", optarg);
                if (opt == 'l')
                        config.folders.layers_dir = arena_text(&texts, "%s", optarg);
                if (opt == 'i')
                        config.folders.images_dir = arena_text(&texts, "%s", optarg);
                if (opt == 'v')
                        config.volumes_dir = arena_text(&texts, "%s", optarg);
                if (opt == 'd' && !supervisor_take_devices(&config, arena_text(&texts, "%s", optarg)))
                        return usage("--devices has too many paths");
                if (opt == '?')
                        return usage("unknown option");
        }
        if (optind < argc || !is_peer_socket(SUPERVISOR_SOCKET_FD))
                return usage("descriptor 3 is not the engine's socket");
        if (fcntl(SUPERVISOR_SOCKET_FD, F_SETFD, FD_CLOEXEC) < 0)
                return usage("descriptor 3 cannot be used");

        /* Sandboxes inherit our groups; rootless they cannot be dropped, and nothing is mounted that they open. */
        if (geteuid() == 0 && setgroups(0, NULL) < 0)
                log_text(LOG_WARN, "the supplementary groups could not be dropped");
        umask(022);
        init_own_title(argc, argv);

        struct csn_error err = { 0 };
        int rc = supervisor_serve(SUPERVISOR_SOCKET_FD, &config, &err);
        if (rc < 0)
                log_text(LOG_ERROR, "%s", err.text);
        arena_done(&texts);
        return rc < 0 ? csn_code_exit(err.code) : 0;
}
