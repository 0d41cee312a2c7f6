#include "lang/python/pages.h"

#include <limits.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "lang/python/maps.h"

/* What the kernel maps at one fault of a page of a file that is in memory (do_fault_around() in mm/memory.c). */
#define AROUND (64 * KIB)

static struct maps remembered;

/* Ends by a range without length. */
static struct list {
        struct range *ranges;
        size_t n;
} written, looked_at;

int pages_remember(struct csn_error *err)
{
        return maps_read(&remembered, err);
}

static void add_page(struct list *list, uint64_t start)
{
        struct range *last = list->n ? &list->ranges[list->n - 1] : NULL;
        if (last && start == last->start + last->len)
                last->len += maps_page();
        else if (list->n < MAPS_MAX)
                list->ranges[list->n++] = (struct range){ start, maps_page() };
}

/* Of what may be written to, the pages of its own.  Of text one page for all that come with it. */
static void add(struct list *list, const struct mapping *one, uint64_t place, uint64_t entry)
{
        uint64_t around = max_u64(place / AROUND * AROUND, one->range.start);
        bool is_text = !(one->rights & PROT_WRITE), of_file = entry & PAGE_OF_FILE;
        if (is_text && of_file && (!list->n || list->ranges[list->n - 1].start < around))
                add_page(list, around);
        else if (!is_text && !of_file && entry & PAGE_ALONE)
                add_page(list, place);
}

static int look(int table, const struct mapping *one, struct list *list, struct csn_error *err)
{
        static uint64_t entries[PAGE_ENTRIES_MAX];
        for (uint64_t done = 0; done < one->range.len / maps_page();) {
                ssize_t got = maps_entries(table, &one->range, done, entries, err);
                if (got < 0)
                        return (int)got;
                for (size_t i = 0; i < (size_t)got; i++)
                        if (entries[i] & PAGE_PRESENT)
                                add(list, one, one->range.start + (done + i) * maps_page(), entries[i]);
                done += (uint64_t)got;
        }
        return 0;
}

static int tell(int fd, int table, bool of_text, struct list *list, struct csn_error *err)
{
        list->n = 0;
        for (size_t i = 0; i < remembered.n; i++)
                if (of_text == !(remembered.rows[i].rights & PROT_WRITE) && look(table, &remembered.rows[i], list, err) < 0)
                        return -err->code;
        list->ranges[list->n] = (struct range){ 0 };
        return io_write_all(fd, list->ranges, (list->n + 1) * sizeof list->ranges[0]) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "tell the pages") : 0;
}

int pages_tell(int fd, struct csn_error *err)
{
        struct list list = { .ranges = maps_memory((MAPS_MAX + 1) * sizeof list.ranges[0]) };
        auto_fd table = maps_table(err);
        if (table < 0)
                return table;
        if (!list.ranges)
                return err_set(err, CSN_E_SYSTEM, errno, "memory for the pages");
        int r = tell(fd, table, false, &list, err);
        return r == 0 ? tell(fd, table, true, &list, err) : r;
}

static bool take(struct range **at, const struct range *end, struct list *ret)
{
        *ret = (struct list){ .ranges = *at };
        while (*at < end && (*at)->len) {
                ret->n++;
                (*at)++;
        }
        return (*at)++ < end;
}

int pages_take(const void *bytes, size_t len, struct csn_error *err)
{
        static struct range *taken;
        free(taken);
        taken = mem_alloc(len + 1);
        memcpy(taken, bytes, len);
        struct range *at = taken, *end = taken + len / sizeof *taken;
        written = looked_at = (struct list){ 0 };
        if (len > 0 && (len % sizeof *taken != 0 || !take(&at, end, &written) || !take(&at, end, &looked_at) || at != end))
                return err_set(err, CSN_E_INPUT, 0, "pages: %zu bytes are no two lists of ranges", len);
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

/*
 * All ranges by one call, and not by one for each: process_madvise(2), which takes this advice for one's own memory (Linux 6.13).
 * It ends where a range is there no more, and goes on behind it.
 */
static bool populate_at_once(const struct list *list, int advice)
{
        auto_fd self = (int)syscall(SYS_pidfd_open, getpid(), 0);
        if (self < 0 || syscall(SYS_process_madvise, self, NULL, 0, advice, 0) < 0)
                return false;
        for (size_t done = 0; done < list->n;) {
                ssize_t bytes = syscall(SYS_process_madvise, self, &list->ranges[done], min_u64(list->n - done, IOV_MAX), advice, 0);
                do
                        bytes -= (ssize_t)list->ranges[done++].len;
                while (bytes > 0 && done < list->n);
        }
        return true;
}

/* One call instead of a fault for each page; before Linux 5.14 there is only the fault, where all of the range is still there. */
static void populate(const struct list *list, int advice)
{
        if (populate_at_once(list, advice))
                return;
        bool is_known = madvise(NULL, 0, advice) == 0;
        for (size_t i = 0; i < list->n; i++)
                if (madvise((void *)(uintptr_t)list->ranges[i].start, list->ranges[i].len, is_known ? advice : MADV_NORMAL) == 0 && !is_known)
                        touch(&list->ranges[i], advice == MADV_POPULATE_WRITE);
}

void pages_populate(void)
{
        _Static_assert(sizeof(struct range) == sizeof(struct iovec), "a range is an iovec");
        populate(&looked_at, MADV_POPULATE_READ);
        populate(&written, MADV_POPULATE_WRITE);
}
