/* Changes in folders (inotify(7)): all operations share an inotify instance, because a sandbox has only a few. */
#include "guest/guest.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#define WATCHED_MAX 4096       /* folders, of all operations together */
#define LEVELS_MAX 32
#define WAITING_MAX 256        /* events unread by the engine; later events are lost, and GUEST_LOST reports the loss */
#define MASK (IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | \
              IN_MOVE_SELF | IN_ONLYDIR)

struct folder_watch {
        struct operation op;
        char *path;
        uint64_t depth, flags;
        bool lost;                   /* GUEST_LOST is due when the queue has room */
};

/* A folder watched by an operation; operations watching the same folder share the kernel's number. */
struct watched {
        struct watched *next;
        int number;
        struct folder_watch *of;
        unsigned level;
        char path[];                 /* below the operation's folder, "" for itself */
};

static void tell(struct folder_watch *watch, enum guest_happening what, bool is_folder, const char *path)
{
        struct guest_event event = { .what = what, .is_folder = is_folder, .path = (char *)(uintptr_t)path };
        struct buf packet;
        if (watch->op.out.n >= WAITING_MAX) {
                watch->lost = true;
                return;
        }
        buf_init(&packet, WIRE_MAX);
        if (guest_put_event(&packet, &event))
                operation_send(&watch->op, packet.bytes, packet.len, NULL, 0);
        buf_done(&packet);
}

static bool is_watched(const struct guest *guest, int number)
{
        for (const struct watched *one = guest->watched; one; one = one->next)
                if (one->number == number)
                        return true;
        return false;
}

static void forget(struct guest *guest, struct watched **at)
{
        struct watched *one = *at;
        *at = one->next;
        guest->watched_n--;
        if (!is_watched(guest, one->number))
                inotify_rm_watch(guest->happenings.fd, one->number);
        free(one);
}

static void folder_closed(struct operation *op)
{
        struct folder_watch *watch = (struct folder_watch *)op;
        for (struct watched **at = &op->guest->watched; *at;) {
                if ((*at)->of == watch)
                        forget(op->guest, at);
                else
                        at = &(*at)->next;
        }
        operation_release(op);
        free(watch->path);
        free(watch);
}

static int folder_take(struct operation *op, const uint8_t *bytes, size_t len, struct csn_error *err)
{
        (void)op;
        (void)bytes;
        (void)len;
        return err_set(err, CSN_E_PROTOCOL, 0, "a watch was sent something");
}

static void folder_room(struct operation *op)
{
        struct folder_watch *watch = (struct folder_watch *)op;
        if (!watch->lost)
                return;
        watch->lost = false;
        tell(watch, GUEST_LOST, false, "");
}

/*
 * Watch a folder and the folders inside, down to the requested depth.  told: report the contents, too, because a new
 * folder may have got entries before the watch.
 */
static int add(struct folder_watch *watch, const char *below, unsigned level, bool told, struct csn_error *err)
{
        struct guest *guest = watch->op.guest;
        struct arena arena = { 0 };
        const char *path = below[0] ? arena_text(&arena, "%s/%s", watch->path, below) : watch->path;
        int rc = 0, number = -1;
        if (guest->watched_n >= WATCHED_MAX)
                rc = err_set(err, CSN_E_BUSY, 0, "%d folders are watched in this sandbox, as many as there may be",
                        WATCHED_MAX);
        else if (own_proc_check(path) < 0 || (number = inotify_add_watch(guest->happenings.fd, path, MASK)) < 0)
                rc = files_error(err, "watch", path);
        if (rc == 0) {
                struct watched *one = mem_alloc(sizeof *one + strlen(below) + 1);
                one->number = number;
                one->of = watch;
                one->level = level;
                memcpy(one->path, below, strlen(below) + 1);
                one->next = guest->watched;
                guest->watched = one;
                guest->watched_n++;
        }
        DIR *dir = rc == 0 && (level + 1 < watch->depth || told) ? own_proc_opendir(path) : NULL;
        for (struct dirent *found = dir ? readdir(dir) : NULL; found && rc == 0; found = readdir(dir)) {
                const char *name = found->d_name;
                if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                        continue;
                const char *inner = arena_text(&arena, "%s%s%s", below, below[0] ? "/" : "", name);
                if (told)
                        tell(watch, GUEST_CREATED, found->d_type == DT_DIR, inner);
                struct csn_error gone = { 0 };
                if (found->d_type == DT_DIR && level + 1 < watch->depth && level + 1 < LEVELS_MAX)
                        rc = add(watch, inner, level + 1, told, &gone);
                if (rc < 0 && gone.code == CSN_E_BUSY)
                        *err = gone;
                else
                        rc = 0;
        }
        if (dir)
                closedir(dir);
        arena_done(&arena);
        return rc;
}

/*
 * A folder was renamed, or moved out of sight: forget the folder and all folders inside.  A folder with a new name is
 * found anew.
 */
static void forget_below(struct folder_watch *watch, const char *path)
{
        size_t len = strlen(path);
        for (struct watched **at = &watch->op.guest->watched; *at;) {
                if ((*at)->of == watch && strncmp((*at)->path, path, len) == 0 &&
                        ((*at)->path[len] == 0 || (*at)->path[len] == '/'))
                        forget(watch->op.guest, at);
                else
                        at = &(*at)->next;
        }
}

static void happened_to(struct watched *one, const struct inotify_event *event)
{
        struct folder_watch *watch = one->of;
        struct csn_error err;
        struct arena arena = { 0 };
        bool is_folder = event->mask & IN_ISDIR;
        const char *name = event->len ? event->name : "";
        const char *path = arena_text(&arena, "%s%s%s", one->path, one->path[0] && name[0] ? "/" : "", name);
        if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF)) {
                if (!one->path[0])
                        tell(watch, GUEST_REMOVED, true, "");
        } else if (event->mask & IN_DELETE) {
                tell(watch, GUEST_REMOVED, is_folder, path);
        } else if (event->mask & IN_MOVED_FROM) {
                tell(watch, GUEST_RENAMED, is_folder, path);
                if (is_folder)
                        forget_below(watch, path);
        } else if (event->mask & (IN_CREATE | IN_MOVED_TO)) {
                tell(watch, GUEST_CREATED, is_folder, path);
                account_enter(watch->op.guest, watch->flags);
                if (is_folder && one->level + 1 < watch->depth && one->level + 1 < LEVELS_MAX &&
                        add(watch, path, one->level + 1, true, &err) < 0 && err.code == CSN_E_BUSY)
                        tell(watch, GUEST_LOST, true, path);
                account_files(watch->op.guest, false);
        } else if (event->mask & IN_MODIFY) {
                tell(watch, GUEST_CHANGED, is_folder, path);
        } else if (event->mask & IN_ATTRIB) {
                tell(watch, GUEST_ATTRIBUTES, is_folder, path);
        }
        arena_done(&arena);
}

static void happened(struct guest *guest, const struct inotify_event *event)
{
        if (event->mask & IN_Q_OVERFLOW)
                for (struct watched *one = guest->watched; one; one = one->next)
                        if (!one->path[0])
                                tell(one->of, GUEST_LOST, true, "");
        /*
         * The list grows at its front during the loop.  A renamed folder and the folders inside leave the list, all
         * nearer to the front than their parent, because folders are found from the top.
         */
        for (struct watched *one = guest->watched, *next; one; one = next) {
                next = one->next;
                if (one->number == event->wd && !(event->mask & IN_IGNORED))
                        happened_to(one, event);
        }
        for (struct watched **at = &guest->watched; *at && event->mask & IN_IGNORED;) {
                if ((*at)->number == event->wd)
                        forget(guest, at);
                else
                        at = &(*at)->next;
        }
}

static void happenings_ready(struct watch *watch, uint32_t events)
{
        static _Alignas(struct inotify_event) char bytes[16 * KIB];
        (void)events;
        ssize_t n = read(watch->fd, bytes, sizeof bytes);
        for (ssize_t at = 0; at < n;) {
                const struct inotify_event *event = (const struct inotify_event *)(const void *)(bytes + at);
                happened(watch->owner, event);
                at += (ssize_t)(sizeof *event + event->len);
        }
}

static int open_inotify(struct guest *guest, struct csn_error *err)
{
        if (guest->happenings.fd >= 0)
                return 0;
        int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (fd < 0)
                return err_set(err, CSN_E_BUSY, errno, "watch files");
        guest->happenings = (struct watch){ .fd = fd, .ready = happenings_ready, .owner = guest };
        return loop_watch(guest->loop, &guest->happenings, fd, EPOLLIN, err);
}

void watch_begin(struct guest *guest, const struct guest_file *what, int *sock)
{
        static const struct operation_kind kind = { folder_take, folder_room, folder_closed };
        struct folder_watch *watch = mem_alloc(sizeof *watch);
        struct arena arena = { 0 };
        struct guest_entry entry;
        struct csn_error err;
        watch->path = mem_copy(what->path, strlen(what->path));
        watch->depth = max_u64(1, min_u64(what->depth, LEVELS_MAX));
        watch->flags = what->flags;
        if (!operation_open(&watch->op, guest, &kind, sock))
                return;
        account_enter(guest, what->flags);
        if (account_has(guest, what, &err) < 0 || open_inotify(guest, &err) < 0 ||
            files_entry(watch->path, watch->path, "", &arena, &entry, &err) < 0 || add(watch, "", 0, false, &err) < 0)
                operation_fail(&watch->op, &err);
        else
                operation_tell_entry(&watch->op, &entry);
        account_files(guest, false);
        arena_done(&arena);
}
