#include "lang/python/zygote/memory_prefault.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "lang/python/zygote/memory_maps.h"
#include "tap.h"

struct told {
        uint64_t start, len;   /* bytes */
};

static size_t page;

/* Three pages that this process alone has; the one in the middle is read-only. */
static char *three_pages(void)
{
        char *bytes = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bytes == MAP_FAILED)
                abort();
        memset(bytes, 1, 3 * page);
        CHECK(mprotect(bytes + page, page, PROT_READ) == 0);
        return bytes;
}

/* pages_take() of bytes. */
static int take(const void *bytes, size_t size, struct csn_error *err)
{
        int ends[2];
        CHECK(pipe(ends) == 0 && write(ends[1], bytes, size) == (ssize_t)size);
        close(ends[1]);
        int r = pages_take(ends[0], err);
        close(ends[0]);
        return r;
}

static void populate(void)
{
        pages_text();
        pages_memory();
}

static bool is_told(const struct told *ranges, size_t n, const char *byte)
{
        for (size_t i = 0; i < n; i++)
                if ((uintptr_t)byte - ranges[i].start < ranges[i].len)
                        return true;
        return false;
}

static void what_may_be_written_to_is_told_and_nothing_else(void)
{
        static struct told ranges[16384];
        struct csn_error err;
        char *bytes = three_pages();
        FILE *file = tmpfile();
        CHECK(file && pages_remember(&err) == 0 && pages_tell(fileno(file), &err) == 0);
        rewind(file);
        size_t n = fread(ranges, sizeof ranges[0], ARRAY_LEN(ranges), file);
        CHECK(n > 0 && is_told(ranges, n, bytes) && is_told(ranges, n, bytes + 2 * page));
        CHECK(!is_told(ranges, n, bytes + page));
        fclose(file);
        munmap(bytes, 3 * page);
}

/* A file as the linker has text of it: 40 pages, of which the third has been looked at. */
static char *text(void)
{
        char *block = mem_alloc(page);
        FILE *file = tmpfile();
        for (int i = 0; file && i < 40; i++)
                CHECK(fwrite(block, page, 1, file) == 1);
        CHECK(file && fflush(file) == 0);
        free(block);
        char *bytes = mmap(NULL, 40 * page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0);
        CHECK(bytes != MAP_FAILED && ((volatile char *)bytes)[2 * page] == 0);
        fclose(file);
        return bytes;
}

static bool is_mapped(const char *byte)
{
        static uint64_t entries[PAGE_ENTRIES_MAX];
        struct csn_error err;
        struct range range = { (uintptr_t)byte, page };
        int table = maps_table(&err);
        bool is = table >= 0 && maps_entries(table, &range, 0, entries, &err) == 1 && entries[0] & PAGE_PRESENT;
        close(table);
        return is;
}

static void text_is_looked_at_in_the_child(void)
{
        static struct told ranges[16384];
        struct csn_error err;
        char *bytes = text();
        int status = -1;
        FILE *file = tmpfile();
        CHECK(is_mapped(bytes + 2 * page) && !is_mapped(bytes + 39 * page));
        CHECK(file && pages_remember(&err) == 0 && pages_tell(fileno(file), &err) == 0);
        rewind(file);
        size_t n = fread(ranges, sizeof ranges[0], ARRAY_LEN(ranges), file);
        pid_t pid = fork();
        if (pid == 0) {
                bool before = is_mapped(bytes + 2 * page);
                populate();
                bool nothing = is_mapped(bytes + 2 * page);
                if (take(ranges, n * sizeof ranges[0], &err) == 0)
                        populate();
                _exit(!before && !nothing && is_mapped(bytes + 2 * page) && !is_mapped(bytes + 39 * page) ? 0 : 1);
        }
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
        fclose(file);
        munmap(bytes, 40 * page);
}

/*
 * Memory that is in a file, as shared.h lays it out: 40 pages, of which the third has been looked at and the last
 * written to.
 */
static char *memory(void)
{
        int fd = memfd_create("test", MFD_CLOEXEC);
        CHECK(fd >= 0 && ftruncate(fd, (off_t)(40 * page)) == 0);
        char *bytes = mmap(NULL, 40 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        close(fd);
        CHECK(bytes != MAP_FAILED && ((volatile char *)bytes)[2 * page] == 0);
        bytes[39 * page] = 1;
        return bytes;
}

/* What a function tells, in a process of its own in which nothing is mapped of what is only in files. */
static size_t told_by(int (*tell)(int fd, struct csn_error *err), struct told *ranges, size_t max)
{
        struct csn_error err;
        FILE *file = tmpfile();
        pid_t pid = file ? fork() : -1;
        int status = -1;
        if (pid == 0)
                _exit(tell(fileno(file), &err) < 0);
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
        rewind(file);
        size_t n = fread(ranges, sizeof ranges[0], max, file);
        fclose(file);
        return n;
}

static void nothing_is_looked_at_that_is_mapped_already(void)
{
        static struct told all[16384], needed[16384];
        struct csn_error err;
        char *bytes = memory(), *code = text();
        int status = -1;
        CHECK(pages_remember(&err) == 0);
        FILE *file = tmpfile();
        CHECK(file && pages_tell(fileno(file), &err) == 0);
        rewind(file);
        size_t n = fread(all, sizeof all[0], ARRAY_LEN(all), file), written = 0;
        fclose(file);
        CHECK(is_told(all, n, bytes + 39 * page));
        while (written < n && all[written].len)
                written++;
        CHECK(is_told(all + written, n - written, bytes + 2 * page) || is_told(all + written, n - written, bytes));
        CHECK(take(all, n * sizeof all[0], &err) == 0);
        size_t needed_n = told_by(pages_thin, needed, ARRAY_LEN(needed));
        CHECK(needed_n > written && needed_n <= n);
        pid_t pid = fork();
        if (pid == 0) {
                bool good = take(needed, needed_n * sizeof needed[0], &err) == 0;
                populate();
                _exit(good && is_mapped(bytes + 2 * page) && is_mapped(code + 2 * page) ? 0 : 1);
        }
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
        munmap(bytes, 40 * page);
        munmap(code, 40 * page);
}

/* How a child ends that makes ranges its own. */
static int populated(const struct told *ranges, size_t size)
{
        struct csn_error err;
        int status = -1;
        pid_t pid = fork();
        if (pid == 0) {
                if (take(ranges, size, &err) < 0)
                        _exit(1);
                populate();
                _exit(0);
        }
        return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static void a_range_that_cannot_be_written_to_harms_nobody(void)
{
        if (madvise(NULL, 0, MADV_POPULATE_WRITE) < 0)
                SKIP("MADV_POPULATE_WRITE is there from Linux 5.14 on");
        char *bytes = three_pages();
        struct told ranges[] = { { (uintptr_t)bytes, page }, { (uintptr_t)bytes + page, page },
                { (uintptr_t)bytes + 2 * page, page }, { 0 }, { (uintptr_t)bytes, page },
                { (uintptr_t)bytes + page, page }, { (uintptr_t)bytes + 2 * page, page }, { 0 },
                { (uintptr_t)bytes, page }, { 0 } };
        CHECK(populated(ranges, sizeof ranges) == 0);
        munmap(bytes + 2 * page, page);
        CHECK(populated(ranges, sizeof ranges) == 0);
        munmap(bytes, 2 * page);
        CHECK(populated(ranges, sizeof ranges) == 0);
}

static void what_is_no_list_of_ranges_is_refused(void)
{
        struct csn_error err;
        struct told ranges[] = { { page, page }, { 0 }, { page, page }, { 0 }, { 0 }, { 0 } };
        CHECK(take(ranges, 5 * sizeof ranges[0] - 1, &err) == -CSN_E_INPUT);
        for (size_t n = 1; n < 5; n++)
                CHECK(take(ranges, n * sizeof ranges[0], &err) == -CSN_E_INPUT);   /* no end of a list */
        CHECK(take(ranges, sizeof ranges, &err) == -CSN_E_INPUT);
        CHECK(take(ranges, 5 * sizeof ranges[0], &err) == 0);
        CHECK(take(ranges, 0, &err) == -CSN_E_INPUT);
}

int main(void)
{
        page = (size_t)sysconf(_SC_PAGESIZE);
        RUN(what_may_be_written_to_is_told_and_nothing_else);
        RUN(text_is_looked_at_in_the_child);
        RUN(nothing_is_looked_at_that_is_mapped_already);
        RUN(a_range_that_cannot_be_written_to_harms_nobody);
        RUN(what_is_no_list_of_ranges_is_refused);
        return tap_done();
}
