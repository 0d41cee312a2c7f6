#include "lang/python/zygote/memory_layout.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Linux 6.1 */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* Linux 6.3 */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

#define TEXT (PROT_READ | PROT_EXEC)
#define DATA (PROT_READ | PROT_WRITE)

/* Text gets a huge page when a process has used a quarter of its pages. */
#define TEXT_USED (HUGE_PAGE / 4)

/* Limit for a library's data: some libraries have much zeroed data, and use little. */
#define LIBRARY_MAX (4 * MIB)
#define LIBRARIES_MAX 2048

static struct maps maps;

static void *address(uint64_t number)
{
        return (void *)(uintptr_t)number;
}

static uint64_t end_of(const struct range *range)
{
        return range->start + range->len;
}

static uint64_t up(uint64_t number, uint64_t step)
{
        return (number + step - 1) / step * step;
}

/* The huge pages with room in a range. */
static struct range inner(const struct range *range)
{
        uint64_t start = up(range->start, HUGE_PAGE), end = end_of(range) / HUGE_PAGE * HUGE_PAGE;
        return (struct range){ start, end > start ? end - start : 0 };
}

/* ---- text ---- */

struct use {
        uint64_t mapped;   /* bytes of the file mapped now */
        bool own;          /* some pages are private to this process */
};

static int look(int table, const struct range *range, struct use *ret, struct csn_error *err)
{
        static uint64_t entries[PAGE_ENTRIES_MAX];
        *ret = (struct use){ 0 };
        for (uint64_t done = 0; done < range->len / maps_page();) {
                ssize_t got = maps_entries(table, range, done, entries, err);
                if (got < 0)
                        return (int)got;
                for (ssize_t i = 0; i < got; i++) {
                        bool present = entries[i] & PAGE_PRESENT, of_file = entries[i] & PAGE_OF_FILE;
                        ret->mapped += present && of_file ? maps_page() : 0;
                        ret->own = ret->own || entries[i] & PAGE_SWAPPED || (present && !of_file);
                }
                done += (uint64_t)got;
        }
        return 0;
}

/* Each read-only mapping of a file; `each` gets its use. */
static int for_text(void (*each)(const struct mapping *one, const struct use *use), struct csn_error *err)
{
        auto_fd table = maps_table(err);
        int r = table < 0 ? table : maps_read(&maps, err);
        for (size_t i = 0; r == 0 && i < maps.n; i++) {
                struct use use;
                if (!maps.rows[i].of_file || maps.rows[i].rights & PROT_WRITE)
                        continue;
                r = look(table, &maps.rows[i].range, &use, err);
                if (r == 0)
                        each(&maps.rows[i], &use);
        }
        return r;
}

static void forget(const struct mapping *one, const struct use *use)
{
        /* Private pages were relocated by the dynamic linker before the mapping became read-only. */
        if (use->mapped && !use->own)
                madvise(address(one->range.start), one->range.len, MADV_DONTNEED);
}

int shared_forget_text(struct csn_error *err)
{
        return for_text(forget, err);
}

static bool follows(const struct mapping *one, const struct mapping *next)
{
        return one->of_file && one->inode == next->inode && end_of(&one->range) == next->range.start &&
                one->offset + one->range.len == next->offset;
}

/*
 * The linker's parts before and behind the text of a file are not executable, and so have mappings of their own.  The
 * kernel merges mappings with the same rights.  Code in this process may map and execute anything, so nothing is lost.
 */
static void join(const struct mapping *one, const struct use *use)
{
        bool has_before = one > maps.rows && follows(one - 1, one),
             has_next = one + 1 < maps.rows + maps.n && follows(one, one + 1);
        if (one->rights == PROT_READ && !use->own &&
                ((has_before && one[-1].rights == TEXT) || (has_next && one[1].rights == TEXT)))
                mprotect(address(one->range.start), one->range.len, TEXT);
}

/* ---- memory moved to files ---- */

/*
 * The file ends where the last range ends, and has no room between ranges: a run can grow a mapping (mremap(2)), and a
 * look at unused room in the file allocates memory, which would stay for later runs.
 */
struct file {
        const char *name;
        int fd;
        uint64_t end;
};

/* Only we may ask for the file's pages in memory (mincore(2)). */
static void file_open(struct file *file)
{
        file->fd = memfd_create(file->name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
        if (file->fd < 0 && errno == EINVAL)
                file->fd = memfd_create(file->name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (file->fd >= 0 && fchmod(file->fd, 0) < 0)
                fd_close(&file->fd);
}

/* The mappings stay.  A write to a mapping makes a private page. */
static int file_close(struct file *file, struct csn_error *err)
{
        int r = 0;
        if (file->fd >= 0 &&
                fcntl(file->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
                r = err_set(err, CSN_E_SYSTEM, errno, "seal the memory of forks");
        fd_close(&file->fd);
        return r;
}

/* Copy the range to the file, from *ret_offset on. */
static bool file_copy(struct file *file, const struct range *range, off_t *ret_offset)
{
        *ret_offset = (off_t)file->end;
        for (uint64_t done = 0; done < range->len;) {
                ssize_t n = file->fd < 0
                        ? -1
                        : pwrite(file->fd, address(range->start + done), range->len - done, (off_t)(file->end + done));
                if (n <= 0) {
                        if (file->fd >= 0 && ftruncate(file->fd, *ret_offset) < 0)
                                fd_close(&file->fd);
                        return false;
                }
                done += (uint64_t)n;
        }
        file->end += range->len;
        return true;
}

/* Map the file over the range, from the offset on. */
static bool file_map(const struct file *file, const struct range *range, off_t offset, int rights)
{
        void *mapped = mmap(address(range->start), range->len, rights, MAP_PRIVATE | MAP_FIXED, file->fd, offset);
        /* cppcheck-suppress memleak ; the new mapping takes the place of the old mapping */
        return mapped != MAP_FAILED;
}

/*
 * A file for a range with room for huge pages: the range has the same place in a huge page of the file as in memory.
 * The bytes before the range are never mapped.
 */
static void file_open_for(struct file *file, const struct range *range)
{
        file->end = range->start % HUGE_PAGE;
        file_open(file);
}

static bool collapse(const struct range *range)
{
        struct range huge = inner(range);
        return huge.len > 0 && madvise(address(huge.start), huge.len, MADV_COLLAPSE) == 0;
}

/*
 * The copy of the text is mapped elsewhere first: without a huge page the copy would be no better, and the text of the
 * file is shared by all processes. *ret_done: whether a huge page was available.
 */
static int text_to_file(const struct range *range, bool *ret_done, struct csn_error *err)
{
        struct file file = { .name = "caisson-text" };
        struct range place = { .len = range->len };
        off_t offset;
        file_open_for(&file, range);
        char *room = mmap(NULL, range->len + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        place.start = up((uintptr_t)room, HUGE_PAGE);
        *ret_done = room != MAP_FAILED && file_copy(&file, range, &offset) && file_map(&file, &place, offset, TEXT) &&
                collapse(&place) && file_map(&file, range, offset, TEXT);
        if (room != MAP_FAILED)
                munmap(room, range->len + HUGE_PAGE);
        return file_close(&file, err);
}

static int text_to_huge_pages(struct csn_error *err)
{
        auto_fd table = maps_table(err);
        int r = table < 0 ? table : maps_read(&maps, err);
        bool go_on = true;
        for (size_t i = 0; r == 0 && go_on && i < maps.n; i++) {
                struct range all = inner(&maps.rows[i].range);
                if (!maps.rows[i].of_file || maps.rows[i].rights != TEXT)
                        continue;
                for (struct range one = { all.start, HUGE_PAGE }; r == 0 && go_on && one.start < end_of(&all);
                        one.start += HUGE_PAGE) {
                        struct use use;
                        r = look(table, &one, &use, err);
                        if (r == 0 && use.mapped >= TEXT_USED && !use.own)
                                r = text_to_file(&one, &go_on, err);
                }
        }
        return r;
}

/* ---- memory ---- */

/* small: the file of all ranges without room for a huge page. */
static int data_to_file(struct file *small, const struct range *range, struct csn_error *err)
{
        struct file own = { .name = small->name };
        bool is_small = inner(range).len == 0;
        struct file *file = is_small ? small : &own;
        off_t offset;
        if (!is_small)
                file_open_for(&own, range);
        if (file_copy(file, range, &offset))
                file_map(file, range, offset, DATA);
        collapse(range);
        return is_small ? 0 : file_close(&own, err);
}

static struct {
        struct range ranges[LIBRARIES_MAX];
        size_t n;
} libraries;

/*
 * The writable part of a library (elf(5), PT_LOAD) becomes one mapping: relocated parts, read-only after relocation;
 * the data; and the zeroed data, which is in no file, and hard to tell from later mappings behind.  Read-only would
 * hinder an attack on a program through a fault of its own.  In a run the program is the attacker; a judge reads
 * hostile text in Python.
 */
static int add_library(struct dl_phdr_info *library, size_t size, void *context)
{
        (void)size, (void)context;
        for (int i = 0; i < library->dlpi_phnum && libraries.n < LIBRARIES_MAX; i++) {
                const ElfW(Phdr) *part = &library->dlpi_phdr[i];
                uint64_t first = library->dlpi_addr + part->p_vaddr, start = first / maps_page() * maps_page();
                uint64_t all = up(first + part->p_memsz, maps_page()) - start,
                         data = up(first + part->p_filesz, maps_page()) - start;
                if (part->p_type == PT_LOAD && (part->p_flags & (PF_W | PF_X)) == PF_W && data <= LIBRARY_MAX)
                        libraries.ranges[libraries.n++] = (struct range){ start, all <= LIBRARY_MAX ? all : data };
        }
        return 0;
}

static bool is_among(const struct range *one, const struct range *ranges, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (one->start < end_of(&ranges[i]) && ranges[i].start < end_of(one))
                        return true;
        return false;
}

static int settle_memory(const struct range *arenas, size_t arenas_n, struct csn_error *err)
{
        struct file small = { .name = "caisson-memory" };
        int r = maps_read(&maps, err);
        file_open(&small);
        libraries.n = 0;
        dl_iterate_phdr(add_library, NULL);   /* writes to the linker's data, so done before the copy */
        for (size_t i = 0; r == 0 && i < libraries.n; i++)
                r = data_to_file(&small, &libraries.ranges[i], err);
        for (size_t i = 0; r == 0 && i < arenas_n; i++)
                r = data_to_file(&small, &arenas[i], err);
        for (size_t i = 0; r == 0 && i < maps.n; i++) {
                const struct mapping *one = &maps.rows[i];
                if (one->is_heap)
                        r = data_to_file(&small, &one->range, err);
                else if (!one->of_file && !one->inode && one->rights == DATA &&
                        !is_among(&one->range, arenas, arenas_n))
                        collapse(&one->range);
        }
        int closed = file_close(&small, err);
        return r < 0 ? r : closed;
}

int shared_settle(const struct range *arenas, size_t arenas_n, struct csn_error *err)
{
        int r = for_text(join, err);
        if (r == 0)
                r = text_to_huge_pages(err);
        /* Last, because to read the mappings writes to the heap. */
        return r == 0 ? settle_memory(arenas, arenas_n, err) : r;
}
