#include "lang/python/pages.h"

#include <limits.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "lang/python/maps.h"

static struct maps remembered;
static struct range *taken;
static size_t taken_n;

int pages_remember(struct csn_error *err)
{
        return maps_read(&remembered, err);
}

static void add_page(struct range *found, size_t *n, uint64_t start, uint64_t page)
{
        struct range *last = *n ? &found[*n - 1] : NULL;
        if (last && start == last->start + last->len)
                last->len += page;
        else if (*n < MAPS_MAX)
                found[(*n)++] = (struct range){ start, page };
}

static int look(int table, const struct range *range, struct range *found, size_t *n, struct csn_error *err)
{
        static uint64_t entries[PAGE_ENTRIES_MAX];
        for (uint64_t done = 0; done < range->len / maps_page();) {
                ssize_t got = maps_entries(table, range, done, entries, err);
                if (got < 0)
                        return (int)got;
                for (size_t i = 0; i < (size_t)got; i++)
                        if (entries[i] & PAGE_PRESENT && entries[i] & PAGE_ALONE && !(entries[i] & PAGE_OF_FILE))
                                add_page(found, n, range->start + (done + i) * maps_page(), maps_page());
                done += (uint64_t)got;
        }
        return 0;
}

int pages_tell(int fd, struct csn_error *err)
{
        struct range *found = maps_memory(MAPS_MAX * sizeof *found);
        size_t n = 0;
        auto_fd table = maps_table(err);
        if (table < 0)
                return table;
        if (!found)
                return err_set(err, CSN_E_SYSTEM, errno, "memory for the pages");
        for (size_t i = 0; i < remembered.n; i++)
                if (remembered.rows[i].rights & PROT_WRITE && look(table, &remembered.rows[i].range, found, &n, err) < 0)
                        return -err->code;
        return io_write_all(fd, found, n * sizeof *found) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "tell the pages") : 0;
}

int pages_take(const void *bytes, size_t len, struct csn_error *err)
{
        if (len % sizeof *taken != 0 || len > MAPS_MAX * sizeof *taken)
                return err_set(err, CSN_E_INPUT, 0, "pages: %zu bytes are no list of ranges", len);
        taken = mem_alloc(len + 1);
        memcpy(taken, bytes, len);
        taken_n = len / sizeof *taken;
        return 0;
}

static void touch(const struct range *range)
{
        volatile char *bytes = (volatile char *)(uintptr_t)range->start;
        for (size_t at = 0; at < range->len; at += maps_page()) {
                char byte = bytes[at];
                bytes[at] = byte;
        }
}

/*
 * All ranges by one call, and not by one for each: process_madvise(2), which takes this advice for one's own memory (Linux 6.13).
 * It ends where a range is there no more, and goes on behind it.
 */
static bool populate_at_once(void)
{
        auto_fd self = (int)syscall(SYS_pidfd_open, getpid(), 0);
        if (self < 0 || syscall(SYS_process_madvise, self, NULL, 0, MADV_POPULATE_WRITE, 0) < 0)
                return false;
        for (size_t done = 0; done < taken_n;) {
                ssize_t bytes = syscall(SYS_process_madvise, self, &taken[done], min_u64(taken_n - done, IOV_MAX), MADV_POPULATE_WRITE, 0);
                do
                        bytes -= (ssize_t)taken[done++].len;
                while (bytes > 0 && done < taken_n);
        }
        return true;
}

void pages_populate(void)
{
        _Static_assert(sizeof(struct range) == sizeof(struct iovec), "a range is an iovec");
        if (populate_at_once())
                return;
        /* One call instead of a fault for each page; before Linux 5.14 there is only the fault, where all of the range is still there. */
        bool is_known = madvise(NULL, 0, MADV_POPULATE_WRITE) == 0;
        for (size_t i = 0; i < taken_n; i++)
                if (madvise((void *)(uintptr_t)taken[i].start, taken[i].len, is_known ? MADV_POPULATE_WRITE : MADV_NORMAL) == 0 && !is_known)
                        touch(&taken[i]);
}
