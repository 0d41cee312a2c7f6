#include "lang/python/zygote/memory_prefault.h"

#include <limits.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "lang/python/zygote/memory_maps.h"

/* The least the kernel maps for a fault on a page of a file in memory (do_fault_around() in mm/memory.c). */
#define AROUND (64 * KIB)
#define TOLD_MAX (LISTS * (MAPS_MAX + 1) * sizeof(struct range))

enum { WRITTEN, LOOKED_AT, TEXT, LISTS };

static struct maps remembered;

/* Ends by a range without length. */
static struct list {
        struct range *ranges;
        size_t n;
} lists[LISTS];

int pages_remember(struct csn_error *err)
{
        return maps_read(&remembered, err);
}

static void add_written(struct list *list, const struct mapping *one, uint64_t place, uint64_t entry)
{
        if (!(one->rights & PROT_WRITE) || entry & PAGE_OF_FILE || !(entry & PAGE_ALONE))
                return;
        if (list->n && place == list->ranges[list->n - 1].start + list->ranges[list->n - 1].len)
                list->ranges[list->n - 1].len += maps_page();
        else if (list->n < MAPS_MAX)
                list->ranges[list->n++] = (struct range){ place, maps_page() };
}

/* One page for each fault-around window, and only pages still the file's: a private copy has mapped no neighbours. */
static void add_of_file(struct list *list, const struct mapping *one, uint64_t place, uint64_t entry)
{
        uint64_t last = list->n ? list->ranges[list->n - 1].start : 0;
        if (entry & PAGE_OF_FILE && (last < one->range.start || last / AROUND < place / AROUND) && list->n < MAPS_MAX)
                list->ranges[list->n++] = (struct range){ place, maps_page() };
}

static void add_looked_at(struct list *list, const struct mapping *one, uint64_t place, uint64_t entry)
{
        if (one->rights & PROT_WRITE)
                add_of_file(list, one, place, entry);
}

static void add_text(struct list *list, const struct mapping *one, uint64_t place, uint64_t entry)
{
        if (!(one->rights & PROT_WRITE))
                add_of_file(list, one, place, entry);
}

typedef void add_function(struct list *list, const struct mapping *one, uint64_t place, uint64_t entry);
static add_function *const adds[LISTS] = { [WRITTEN] = add_written, [LOOKED_AT] = add_looked_at, [TEXT] = add_text };

/* The process's table, and room for its entries outside of the viewed memory. */
struct view {
        int table;
        uint64_t *entries;
};

static int look(const struct view *view, const struct mapping *one, struct list *list, add_function *add,
        struct csn_error *err)
{
        for (uint64_t done = 0; done < one->range.len / maps_page();) {
                ssize_t got = maps_entries(view->table, &one->range, done, view->entries, err);
                if (got < 0)
                        return (int)got;
                for (size_t i = 0; i < (size_t)got; i++)
                        if (view->entries[i] & PAGE_PRESENT)
                                add(list, one, one->range.start + (done + i) * maps_page(), view->entries[i]);
                done += (uint64_t)got;
        }
        return 0;
}

static int list_open(struct list *list, struct csn_error *err)
{
        *list = (struct list){ .ranges = maps_memory((MAPS_MAX + 1) * sizeof list->ranges[0]) };
        return list->ranges ? 0 : err_set(err, CSN_E_SYSTEM, errno, "memory for the pages");
}

static int list_write(int fd, const struct list *list, struct csn_error *err)
{
        static const struct range end;
        if (io_write_all(fd, list->ranges, list->n * sizeof list->ranges[0]) < 0 ||
                io_write_all(fd, &end, sizeof end) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "tell the pages");
        return 0;
}

static int tell(int fd, const struct view *view, struct list *list, add_function *add, struct csn_error *err)
{
        list->n = 0;
        for (size_t i = 0; i < remembered.n; i++)
                if (look(view, &remembered.rows[i], list, add, err) < 0)
                        return -err->code;
        return list_write(fd, list, err);
}

int pages_tell(int fd, struct csn_error *err)
{
        struct list list;
        auto_fd table = maps_table(err);
        const struct view view = { table, maps_memory(PAGE_ENTRIES_MAX * sizeof(uint64_t)) };
        if (table < 0 || list_open(&list, err) < 0)
                return -err->code;
        int r = view.entries ? 0 : err_set(err, CSN_E_SYSTEM, errno, "memory for the page table");
        for (int i = 0; i < LISTS && r == 0; i++)
                r = tell(fd, &view, &list, adds[i], err);
        return r;
}

static bool take(const struct range **at, const struct range *end, struct list *ret)
{
        *ret = (struct list){ .ranges = (struct range *)*at };
        while (*at < end && (*at)->len) {
                ret->n++;
                (*at)++;
        }
        return (*at)++ < end;
}

static bool take_all(const struct range *bytes, size_t len, struct list ret[LISTS])
{
        const struct range *at = bytes, *end = bytes + len / sizeof *bytes;
        bool is_good = len % sizeof *bytes == 0;
        for (int i = 0; i < LISTS && is_good; i++)
                is_good = take(&at, end, &ret[i]);
        return is_good && at == end;
}

/* In separate memory: a zygote about to fork writes to nothing else here (memory_layout.h). */
int pages_take(int fd, struct csn_error *err)
{
        static struct range *known;
        struct range *taken = maps_memory(TOLD_MAX);
        struct list found[LISTS];
        size_t len = 0;
        ssize_t n = -1;
        while (taken && len < TOLD_MAX && (n = read(fd, (char *)taken + len, TOLD_MAX - len)) != 0)
                if (n > 0)
                        len += (size_t)n;
                else if (errno != EINTR)
                        break;
        int sys = errno;
        bool is_good = n >= 0 && take_all(taken, len, found);
        struct range *old = is_good ? known : taken;
        if (old)
                munmap(old, TOLD_MAX);
        if (n < 0)
                return err_set(err, CSN_E_SYSTEM, sys, "read which pages a run touches");
        if (!is_good)
                return err_set(err, CSN_E_INPUT, 0, "pages: %zu bytes are no %d lists of ranges", len, LISTS);
        known = taken;
        memcpy(lists, found, sizeof lists);
        return 0;
}

static void touch(const struct range *range, bool write)
{
        volatile char *bytes = (volatile char *)(uintptr_t)range->start;
        for (size_t at = 0; at < range->len; at += maps_page()) {
                char byte = bytes[at];
                if (write)
                        bytes[at] = byte;
        }
}

/* Linux 6.14 */
#ifndef PIDFD_SELF_THREAD
#define PIDFD_SELF_THREAD (-10000)
#endif

static bool takes_advice(int process, int advice)
{
        return syscall(SYS_process_madvise, process, NULL, 0, advice, 0) == 0;
}

/*
 * All ranges by a single call instead of a call for each: process_madvise(2), which takes this advice for the caller's
 * own memory (Linux 6.13).  The call ends at a missing range, and the next call goes on behind.
 */
static bool populate_at_once(const struct list *list, int advice)
{
        bool has_name = takes_advice(PIDFD_SELF_THREAD, advice);
        auto_fd opened = has_name ? -1 : (int)syscall(SYS_pidfd_open, getpid(), 0);
        int self = has_name ? PIDFD_SELF_THREAD : opened;
        if (!has_name && (opened < 0 || !takes_advice(opened, advice)))
                return false;
        for (size_t done = 0; done < list->n;) {
                ssize_t bytes = syscall(SYS_process_madvise, self, &list->ranges[done],
                        min_u64(list->n - done, IOV_MAX), advice, 0);
                do
                        bytes -= (ssize_t)list->ranges[done++].len;
                while (bytes > 0 && done < list->n);
        }
        return true;
}

/*
 * A call for each range instead of a fault for each page.  Before Linux 5.14 there is only the fault, in ranges still
 * complete.
 */
static void populate(const struct list *list, int advice)
{
        if (populate_at_once(list, advice))
                return;
        bool is_known = madvise(NULL, 0, advice) == 0;
        for (size_t i = 0; i < list->n; i++)
                if (madvise((void *)(uintptr_t)list->ranges[i].start, list->ranges[i].len,
                            is_known ? advice : MADV_NORMAL) == 0 &&
                        !is_known)
                        touch(&list->ranges[i], advice == MADV_POPULATE_WRITE);
}

void pages_text(void)
{
        _Static_assert(sizeof(struct range) == sizeof(struct iovec), "a range is an iovec");
        populate(&lists[TEXT], MADV_POPULATE_READ);
}

/* Written pages come first: a write to a page mapped as part of a huge page would undo the huge page. */
void pages_memory(void)
{
        populate(&lists[WRITTEN], MADV_POPULATE_WRITE);
        populate(&lists[LOOKED_AT], MADV_POPULATE_READ);
}

static int thin(int table, struct list *list, struct csn_error *err)
{
        struct list needed;
        if (list_open(&needed, err) < 0)
                return -err->code;
        for (size_t i = 0; i < list->n; i++) {
                uint64_t entries[PAGE_ENTRIES_MAX];
                struct list one = { .ranges = &list->ranges[i], .n = 1 };
                ssize_t got = maps_entries(table, one.ranges, 0, entries, err);
                if (got < 0)
                        return (int)got;
                if (entries[0] & PAGE_PRESENT)
                        continue;
                populate(&one, MADV_POPULATE_READ);
                needed.ranges[needed.n++] = *one.ranges;
        }
        *list = needed;
        return 0;
}

/* In the order of a run: written pages are mapped before pages only read. */
int pages_thin(int fd, struct csn_error *err)
{
        auto_fd table = maps_table(err);
        if (table < 0 || thin(table, &lists[TEXT], err) < 0)
                return -err->code;
        populate(&lists[WRITTEN], MADV_POPULATE_WRITE);
        int r = thin(table, &lists[LOOKED_AT], err);
        for (int i = 0; i < LISTS && r == 0; i++)
                r = list_write(fd, &lists[i], err);
        return r;
}
