/*
 * The journal: a slot of a file for each run not yet in the audit.
 *
 * A run gets its slot before it is accepted, and releases the slot once the audit has its row.  Writing a slot is
 * one pwrite(2) to the page cache: the slot survives any death of this process and costs about 2 us, compared
 * with about 60 us for a transaction.  No code waits for the disk, so a power failure may lose runs accepted
 * since the kernel's last write-back (30 s by default, vm.dirty_expire_centisecs).
 *
 * Each opener has its own file in the folder `running`, named by its number (secret.c).  Files of dead openers
 * list the runs in progress at their death; runs_recover() reports these runs.  A slot also keeps a run's row
 * refused by a full database.
 *
 * The first JOURNAL_SLOTS slots are allocated on the disk when the file is made.
 */
#include "store/sql.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#define SLOT_BYTES (16 * KIB)
#define JOURNAL_SLOTS 64
#define FOLDER "running"

enum slot_state { SLOT_FREE, SLOT_GOES_ON, SLOT_ENDED };

/* The begin of a slot; texts follow, each with its NUL. */
struct slot_head {
        uint64_t sum;                      /* of all the rest: an incomplete slot is free */
        uint32_t state, len;               /* len: of all, this head included */
        int64_t status, exit_code, started_ms, finished_ms, expires_ms, owner;
        uint64_t cpu_ms, wall_ms, memory_peak_bytes;
        uint32_t kept, unused;
};

struct slot {
        enum slot_state state;
        char id[40];                       /* of its run */
        char code_sha256[65];
};

struct journal {
        int folder_fd, fd;
        char name[20];
        struct slot *slots;
        size_t n;                          /* slots of the file */
};

/* ---- a slot as bytes ---- */

static uint64_t sum_of(const char *bytes, size_t len)
{
        uint64_t sum = 0xcbf29ce484222325;   /* FNV-1a */
        for (size_t i = 0; i < len; i++)
                sum = (sum ^ (unsigned char)bytes[i]) * 0x100000001b3;
        return sum;
}

#define TEXTS_N 14

static void add_text(char *slot, size_t *len, const char *text)
{
        size_t n = strlen(text) + 1;
        memcpy(slot + *len, text, n);
        *len += n;
}

/* Returns its length. */
static size_t encode(const struct run_left *left, enum slot_state state, char slot[static SLOT_BYTES])
{
        const struct store_run *run = &left->run;
        const char *const texts[TEXTS_N] = { run->id, run->tenant, run->key, run->task_id, run->user, run->language,
                run->profile, run->policy, run->code_sha256, run->verdict, run->trace_id, left->name.name,
                left->name.sha256, run->boundary };
        struct slot_head head = { .state = state,
                .status = run->status,
                .exit_code = run->exit_code,
                .started_ms = run->started_ms,
                .finished_ms = run->finished_ms,
                .expires_ms = left->name.expires_ms,
                .owner = left->name.owner,
                .cpu_ms = run->cpu_ms,
                .wall_ms = run->wall_ms,
                .memory_peak_bytes = run->memory_peak_bytes,
                .kept = left->kept };
        size_t len = sizeof head;
        for (size_t i = 0; i < TEXTS_N; i++) {
                bool fits = texts[i] && strlen(texts[i]) + len + TEXTS_N < SLOT_BYTES;
                add_text(slot, &len, fits ? texts[i] : "");
        }
        head.len = (uint32_t)len;
        memcpy(slot, &head, sizeof head);
        head.sum = sum_of(slot + sizeof head.sum, len - sizeof head.sum);
        memcpy(slot, &head.sum, sizeof head.sum);
        return len;
}

/* False: the slot is free, or was not written whole. */
static bool decode(const char *slot, size_t size, struct arena *arena, struct run_left *ret)
{
        struct slot_head head;
        char *texts[TEXTS_N];
        if (size < sizeof head)
                return false;
        memcpy(&head, slot, sizeof head);
        if ((head.state != SLOT_GOES_ON && head.state != SLOT_ENDED) || head.len < sizeof head || head.len > size ||
            head.sum != sum_of(slot + sizeof head.sum, head.len - sizeof head.sum))
                return false;
        const char *at = slot + sizeof head, *end = slot + head.len;
        for (size_t i = 0; i < TEXTS_N; i++) {
                size_t len = strnlen(at, (size_t)(end - at));
                if (at + len >= end)
                        return false;
                texts[i] = arena_copy(arena, at, len);
                at += len + 1;
        }
        *ret = (struct run_left){
                .run = { .id = texts[0],
                        .tenant = texts[1],
                        .key = texts[2],
                        .task_id = texts[3],
                        .user = texts[4],
                        .language = texts[5],
                        .profile = texts[6],
                        .policy = texts[7],
                        .verdict = texts[9],
                        .trace_id = texts[10],
                        .boundary = texts[13],
                        .status = (int)head.status,
                        .exit_code = head.exit_code,
                        .started_ms = head.started_ms,
                        .finished_ms = head.finished_ms,
                        .cpu_ms = head.cpu_ms,
                        .wall_ms = head.wall_ms,
                        .memory_peak_bytes = head.memory_peak_bytes },
                .name = { .tenant = texts[1], .name = texts[11], .expires_ms = head.expires_ms, .owner = head.owner },
                .ended = head.state == SLOT_ENDED,
                .kept = head.kept,
        };
        snprintf(ret->run.code_sha256, sizeof ret->run.code_sha256, "%s", texts[8]);
        snprintf(ret->name.sha256, sizeof ret->name.sha256, "%s", texts[12]);
        return true;
}

/* ---- the file ---- */

/* Beyond JOURNAL_SLOTS the disk may have no room, and then the reserve has. */
static int write_slot(struct store *store, size_t i, const char *bytes, size_t len)
{
        struct journal *journal = store->journal;
        do {
                ssize_t n = pwrite(journal->fd, bytes, len, (off_t)(i * SLOT_BYTES));
                if (n == (ssize_t)len)
                        return 0;
                if (n >= 0)
                        errno = ENOSPC;
        } while ((errno == ENOSPC || errno == EDQUOT) && reserve_release(store));
        return -errno;
}

static void free_slot(struct store *store, size_t i)
{
        static const char nothing[sizeof(struct slot_head)];
        write_slot(store, i, nothing, sizeof nothing);
        store->journal->slots[i].state = SLOT_FREE;
}

static void add_slots(struct journal *journal, size_t n)
{
        journal->slots = mem_resize(journal->slots, n * sizeof *journal->slots);
        memset(journal->slots + journal->n, 0, (n - journal->n) * sizeof *journal->slots);
        journal->n = n;
}

static int open_journal(struct store *store, struct csn_error *err)
{
        if (store->journal)
                return 0;
        auto_fd folder = -1;
        if (store_folder(store, FOLDER, &folder, err) < 0)
                return -err->code;
        char name[20];
        snprintf(name, sizeof name, "%" PRIx64, (uint64_t)store->owner);
        auto_fd fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        int sys = fd < 0 ? errno : 0;
        do {
                sys = fd < 0 ? sys : posix_fallocate(fd, 0, JOURNAL_SLOTS * SLOT_BYTES);
        } while ((sys == ENOSPC || sys == EDQUOT) && reserve_release(store));
        if (fd < 0 || (sys && sys != EOPNOTSUPP && sys != EINVAL)) {
                if (fd >= 0)
                        unlinkat(folder, name, 0);
                return err_set(err, CSN_E_SYSTEM, sys, "make the journal of runs");
        }
        struct journal *journal = mem_alloc(sizeof *journal);
        *journal = (struct journal){ .folder_fd = take_fd(&folder), .fd = take_fd(&fd) };
        snprintf(journal->name, sizeof journal->name, "%s", name);
        add_slots(journal, JOURNAL_SLOTS);
        store->journal = journal;
        return 0;
}

static size_t find(const struct store *store, const char *id)
{
        const struct journal *journal = store->journal;
        for (size_t i = 0; journal && i < journal->n; i++)
                if (journal->slots[i].state != SLOT_FREE && strcmp(journal->slots[i].id, id) == 0)
                        return i;
        return SIZE_MAX;
}

static size_t find_free(struct journal *journal)
{
        for (size_t i = 0; i < journal->n; i++)
                if (journal->slots[i].state == SLOT_FREE)
                        return i;
        add_slots(journal, journal->n + JOURNAL_SLOTS);
        return journal->n - JOURNAL_SLOTS;
}

/* ---- public functions ---- */

int runs_begin(struct store *store, const struct store_run *run, const struct idempotency *name, bool kept,
        struct csn_error *err)
{
        char bytes[SLOT_BYTES];
        struct run_left left = { .run = *run, .kept = kept };
        if (open_journal(store, err) < 0)
                return -err->code;
        if (name) {
                left.name = *name;
                left.name.owner = store->owner;
        }
        size_t i = find_free(store->journal), len = encode(&left, SLOT_GOES_ON, bytes);
        int rc = write_slot(store, i, bytes, len);
        if (rc < 0)
                return err_set(err, CSN_E_BUSY, -rc, "the state folder has no room for the record of another run");
        struct slot *slot = &store->journal->slots[i];
        slot->state = SLOT_GOES_ON;
        snprintf(slot->id, sizeof slot->id, "%s", run->id);
        snprintf(slot->code_sha256, sizeof slot->code_sha256, "%s", run->code_sha256);
        return 0;
}

const char *runs_begun_code(const struct store *store, const char *id)
{
        size_t i = find(store, id);
        return i == SIZE_MAX ? NULL : store->journal->slots[i].code_sha256;
}

int runs_can_begin(struct store *store, struct csn_error *err)
{
        if (open_journal(store, err) < 0)
                return -err->code;
        size_t i = find_free(store->journal);
        int sys = posix_fallocate(store->journal->fd, (off_t)(i * SLOT_BYTES), SLOT_BYTES);
        bool full = (sys == ENOSPC || sys == EDQUOT) && reserve_left(store) == 0;
        if (full || sys == EROFS || sys == EIO)
                return err_set(err, CSN_E_BUSY, sys, "the state folder has no room for the record of a run");
        return 0;
}

/* Keep the run's row for runs_retry().  0 or a negative errno; -ENOENT: the run has no slot. */
static int keep_row(struct store *store, const struct store_run *run)
{
        char bytes[SLOT_BYTES];
        const struct run_left left = { .run = *run };
        size_t i = find(store, run->id);
        if (i == SIZE_MAX)
                return -ENOENT;
        int rc = write_slot(store, i, bytes, encode(&left, SLOT_ENDED, bytes));
        if (rc < 0)
                return rc;
        store->journal->slots[i].state = SLOT_ENDED;
        cpu_row_waits(store, run);
        return 0;
}

int runs_add(struct store *store, const struct store_run *run, struct csn_error *err)
{
        int rc = audit_add(store, run, err);
        if (rc < 0 && keep_row(store, run) == 0)
                return 0;
        if (rc < 0) {
                cpu_keep(store, run);
                return rc;
        }
        size_t i = find(store, run->id);
        if (i != SIZE_MAX)
                free_slot(store, i);
        return 0;
}

void runs_retry(struct store *store)
{
        struct journal *journal = store->journal;
        cpu_retry(store);
        usage_retry(store);
        for (size_t i = 0; journal && i < journal->n; i++) {
                char bytes[SLOT_BYTES];
                struct run_left left;
                struct arena arena = { 0 };
                bool again = journal->slots[i].state == SLOT_ENDED;
                ssize_t n = again ? pread(journal->fd, bytes, sizeof bytes, (off_t)(i * SLOT_BYTES)) : 0;
                bool added =
                        n > 0 && decode(bytes, (size_t)n, &arena, &left) && runs_add_again(store, &left.run, NULL) == 0;
                if (added)
                        cpu_row_added(store, &left.run);
                arena_done(&arena);
                if (added)
                        free_slot(store, i);
                else if (again)
                        return;            /* further rows would fail, too */
        }
}

void journal_close(struct store *store)
{
        struct journal *journal = store->journal;
        bool empty = true;
        if (!journal)
                return;
        for (size_t i = 0; i < journal->n; i++)
                empty = empty && journal->slots[i].state == SLOT_FREE;
        if (empty)
                unlinkat(journal->folder_fd, journal->name, 0);
        fd_close(&journal->fd);
        fd_close(&journal->folder_fd);
        free(journal->slots);
        free(journal);
        store->journal = NULL;
}

/* ---- runs in progress at the death of another opener ---- */

static int recover_file(int fd, int (*left)(void *owner, const struct run_left *one, struct csn_error *err),
        void *owner, size_t *ret_n, struct csn_error *err)
{
        char bytes[SLOT_BYTES];
        ssize_t n;
        int rc = 0;
        for (off_t at = 0; rc == 0 && (n = pread(fd, bytes, sizeof bytes, at)) > 0; at += SLOT_BYTES) {
                struct run_left one;
                struct arena arena = { 0 };
                if (decode(bytes, (size_t)n, &arena, &one)) {
                        rc = left(owner, &one, err);
                        (*ret_n)++;
                }
                arena_done(&arena);
        }
        return rc;
}

static bool is_dead(const struct store *store, const char *name)
{
        char *end;
        unsigned long long owner = strtoull(name, &end, 16);
        return name[0] != '.' && !*end && !secret_owner_lives(store, (int64_t)owner);
}

int runs_recover(struct store *store, int (*left)(void *owner, const struct run_left *one, struct csn_error *err),
        void *owner, size_t *ret_n, struct csn_error *err)
{
        auto_fd folder = -1;
        *ret_n = 0;
        if (store_folder(store, FOLDER, &folder, err) < 0)
                return -err->code;
        int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir) {
                fd_close(&copy);
                return err_set(err, CSN_E_SYSTEM, errno, "read the folder of journals");
        }
        int rc = 0;
        for (struct dirent *entry = readdir(dir); entry && rc == 0; entry = readdir(dir)) {
                auto_fd fd = is_dead(store, entry->d_name)
                        ? openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
                        : -1;
                rc = fd < 0 ? 0 : recover_file(fd, left, owner, ret_n, err);
                if (fd >= 0 && rc == 0)
                        unlinkat(folder, entry->d_name, 0);
        }
        closedir(dir);
        return rc;
}
