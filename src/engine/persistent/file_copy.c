/*
 * Copies of a sandbox's files: a tar archive of everything that may differ from a new sandbox, out of one sandbox and
 * into another; and foreign archives, unpacked into a folder.
 *
 * Both are a shell and tar inside, with the rights of the sandbox's programs, so an archive is never read out here: the
 * engine stores its bytes, up to a ceiling.  The changed files of /usr, or of / in an image, are in the upper layer of
 * the overlay (sandbox/overlay.c), in which a character device stands for a removed file.  The copy has a list of the
 * removed files, and two archives, one behind the other.
 */
#include "engine/persistent/psandbox_private.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK (GUEST_DATA_MAX)
/* an archive is at most so often as large as its disk: a small file has a head and is padded */
#define OVERHEAD 4
#define KEPT_TEXT 400

/*
 * Names in / that are left out: /usr is copied from its upper layer, the links into /usr belong to the host, proc and
 * dev to the kernel.
 */
#define ALL_BUT "usr:proc:dev:bin:sbin:lib:lib32:lib64:libx32"
#define CHANGED "run/caisson/changed"                      /* SANDBOX_CHANGED */
#define IS_IMAGE "[ \"$(stat -f -c %T /)\" = overlayfs ]"    /* the whole root is an overlay, as in an image with root */

/* The mount points of layers, which are read-only and belong to one sandbox (src/sandbox/mount.c). */
#define LAYERS                                                                                                         \
        "layers=(); for one in packages node_modules; do [ \"$(stat -c %d opt/$one 2>&1)\" = \"$(stat -c %d opt 2>&1)\" ] || " \
        "layers+=(--exclude=\"./opt/$one\"); done\n"

/*
 * tar accepts a vanished file in a folder, but not a vanished file of a list: hence --ignore-failed-read.  A tar or a
 * list that does not finish fails the whole copy.
 */
static const char save_script[] =
        "set -o pipefail; cd / && umask 077 || exit 2\n"
        "keep() { tar --create --file=- --numeric-owner --xattrs --xattrs-exclude='user.overlay.*' --warning=no-file-ignored \"$@\"; }\n"
        "if [ \"$(id -u)\" != 0 ]; then keep --one-file-system ./home/user ./tmp; exit; fi\n"
        "(cd " CHANGED " && find . -ignore_readdir_race -mindepth 1 -type c -printf '%P\\0') >run/.removed || exit 2\n"
        LAYERS IS_IMAGE " && trees=(tmp run/.removed) || { GLOBIGNORE=" ALL_BUT "; trees=(*); }\n"
        "keep --one-file-system --anchored \"${layers[@]}\" --exclude='./opt/caisson*' --exclude='./run/caisson*' --exclude=./run/sudo.socket \"${trees[@]/#/./}\"\n"
        "status=$?; rm -f run/.removed; [ $status -le 1 ] || exit $status\n"
        "cd " CHANGED " && find . -ignore_readdir_race -mindepth 1 \\( -path ./run/caisson -o -path ./run/sudo.socket -o -path ./usr/local/bin/sudo \\) -prune "
        "-o ! -type c -print0 | keep --null --no-recursion --ignore-failed-read --files-from=-\n";

static const char load_script[] =
        "cd /\n" LAYERS
        "GLOBIGNORE=" ALL_BUT "; trees=(*); [ \"$(id -u)\" = 0 ] || trees=(home/user tmp); ! " IS_IMAGE " || trees=(home/user run tmp)\n"
        "for one in \"${trees[@]}\"; do find \"./$one\" -xdev ! -path ./home/user ! -path './opt/caisson*' ! -path './run/caisson*' ! -path ./run/sudo.socket -delete; done 2>/dev/null\n"
        "tar --extract --file=- --anchored \"${layers[@]}\" --ignore-zeros --numeric-owner --xattrs --xattrs-include='user.*' --preserve-permissions || exit\n"
        "[ ! -e run/.removed ] || { xargs -0r rm -rf -- <run/.removed; rm -f run/.removed; }\n";

static const char unpack_script[] =
        "mkdir -p \"$1\" && tar --extract --file=- --directory=\"$1\" --no-same-owner --ignore-zeros $2\n";

/* on_ended() reports the error at the shell's end: a call is not closed from its own callbacks. */
static void fail(struct psandbox_copy *copy, const struct csn_error *error)
{
        copy->why = *error;
        copy->ended = true;
        guest_call_signal(&copy->call, SIGKILL, 0);
}

/* ---- in: as far as tar reads ---- */

static void feed(struct guest_call *call)
{
        struct psandbox_copy *copy = call->owner;
        struct csn_error err;
        char block[BLOCK];
        while (!copy->ended && copy->in_flight + BLOCK <= GUEST_IN_MAX) {
                ssize_t n = pread(copy->fd, block, sizeof block, (off_t)copy->bytes);
                if (n < 0) {
                        err_set(&err, CSN_E_SYSTEM, errno, "read the copy of a sandbox' files");
                        fail(copy, &err);
                        return;
                }
                if (!guest_call_send(call, n ? GUEST_IN : GUEST_IN_END, block, (size_t)n))
                        return;
                copy->ended = n == 0;
                copy->bytes += (uint64_t)n;
                copy->in_flight += (uint64_t)n;
        }
}

static void on_room(struct guest_call *call)
{
        struct psandbox_copy *copy = call->owner;
        if (!copy->saves)
                feed(call);
}

/* ---- out ---- */

static void keep(struct psandbox_copy *copy, const uint8_t *bytes, size_t len)
{
        struct csn_error err;
        if (copy->ended)
                return;
        if (copy->bytes + len > copy->max) {
                err_set(&err, CSN_E_SYSTEM, 0, "the copy of the sandbox' files is longer than %llu bytes",
                        (unsigned long long)copy->max);
                fail(copy, &err);
        } else if (pwrite(copy->fd, bytes, len, (off_t)copy->bytes) != (ssize_t)len) {
                err_set(&err, CSN_E_SYSTEM, errno, "write the copy of a sandbox' files");
                fail(copy, &err);
        }
        copy->bytes += len;
}

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        struct psandbox_copy *copy = call->owner;
        struct csn_error err;
        uint64_t number;
        (void)fds;
        switch (kind) {
        case GUEST_OUT:
                if (copy->saves)
                        keep(copy, bytes + 1, len - 1);
                break;
        case GUEST_ERROR:
                buf_add(&copy->said, bytes + 1, min_u64(len - 1, KEPT_TEXT - min_u64(copy->said.len, KEPT_TEXT)));
                break;
        case GUEST_STARTED:
                if (!copy->saves)
                        feed(call);
                break;
        case GUEST_ROOM:
                if (guest_get_number(bytes, len, &number, &err) < 0)
                        break;
                copy->in_flight -= min_u64(number, copy->in_flight);
                if (!copy->saves)
                        feed(call);
                break;
        case GUEST_EXITED:
                if (guest_get_number(bytes, len, &number, &err) == 0)
                        copy->status = (int)(number & 0xffff);
                break;
        default:
                break;
        }
}

/* tar exits with 1 if a file changed during the copy, which is normal for a sandbox in use. */
static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        struct psandbox_copy *copy = call->owner;
        struct csn_error err;
        loop_untimer(copy->engine->loop, &copy->deadline);
        bool good = WIFEXITED(copy->status) && WEXITSTATUS(copy->status) <= (copy->saves ? 1 : 0);
        if (error || copy->why.code || good) {
                copy->done(copy, error ? error : copy->why.code ? &copy->why : NULL);
                return;
        }
        buf_add(&copy->said, "", 1);
        copy->said.bytes[strcspn(copy->said.bytes, "\n")] = 0;
        err_set(&err, CSN_E_SYSTEM, 0, "the sandbox' files could not be copied: %.200s", copy->said.bytes);
        copy->done(copy, &err);
}

/* ---- both ---- */

/* The time is over, whatever the programs inside do: closing the call kills the rest of its processes. */
static void on_late(struct timer *timer)
{
        struct psandbox_copy *copy = timer->owner;
        struct csn_error err;
        guest_call_close(&copy->call);
        err_set(&err, CSN_E_SYSTEM, 0, "the sandbox' files could not be copied within the %llu ms of engine.copy_ms",
                (unsigned long long)copy->engine->settings->engine.copy_ms);
        copy->done(copy, &err);
}

/* Starts a script; its arguments may be NULL. */
static int begin(struct psandbox *psandbox, struct psandbox_copy *copy, int fd, const char *script, const char *folder,
        const char *option, struct csn_error *err)
{
        static const struct guest_call_events events = { on_packet, on_room, on_ended };
        char *argv[] = { (char[]){ "/bin/bash" }, (char[]){ "-c" }, (char *)(uintptr_t)script, (char[]){ "copy" },
                (char *)(uintptr_t)folder, (char *)(uintptr_t)option, NULL };
        char *env[] = { (char[]){ "PATH=/usr/bin:/bin" }, (char[]){ "LC_ALL=C.UTF-8" }, NULL };
        const struct limits *limits = psandbox_limits(psandbox);
        bool root = psandbox->request.root, saves = script == save_script;
        struct guest_process process = { .folder = (char[]){ "/" },
                .argv = argv,
                .argv_n = folder ? 6 : 4,
                .env = env,
                .env_n = 2,
                .flags = (saves ? 0 : GUEST_INPUT) | (root ? GUEST_AS_ROOT : 0) };
        copy->fd = fd;
        copy->saves = saves;
        copy->bytes = copy->in_flight = 0;
        copy->ended = false;
        copy->status = 0;
        copy->why.code = 0;
        copy->max = OVERHEAD * (limits->disk_bytes + limits->tmp_bytes);
        buf_init(&copy->said, KEPT_TEXT + 1);
        copy->call = (struct guest_call){ .events = &events, .owner = copy };
        if (guest_call_process(psandbox, &copy->call, &process, err) < 0)
                return -err->code;
        copy->engine = psandbox->engine;
        copy->deadline = (struct timer){ .fired = on_late, .owner = copy };
        loop_timer(copy->engine->loop, &copy->deadline, copy->engine->settings->engine.copy_ms * 1000);
        return 0;
}

int psandbox_save(struct psandbox *psandbox, struct psandbox_copy *copy, int fd, struct csn_error *err)
{
        return begin(psandbox, copy, fd, save_script, NULL, NULL, err);
}

int psandbox_load(struct psandbox *psandbox, struct psandbox_copy *copy, int fd, struct csn_error *err)
{
        return begin(psandbox, copy, fd, load_script, NULL, NULL, err);
}

int psandbox_unpack(struct psandbox *psandbox, struct psandbox_copy *copy, int fd, const char *folder,
        struct csn_error *err)
{
        uint8_t magic[2] = { 0 };
        bool packed = pread(fd, magic, sizeof magic, 0) == sizeof magic && magic[0] == 0x1f &&
                magic[1] == 0x8b; /* RFC 1952 */
        return begin(psandbox, copy, fd, unpack_script, folder, packed ? "-z" : "--", err);
}

void psandbox_copy_done(struct psandbox_copy *copy)
{
        guest_call_close(&copy->call);
        if (copy->engine)
                loop_untimer(copy->engine->loop, &copy->deadline);
        buf_done(&copy->said);
}
