#include "lang/python/pages.h"

#include <sys/mman.h>
#include <sys/wait.h>

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

/* How a child ends that makes ranges its own. */
static int populated(const struct told *ranges, size_t size)
{
        struct csn_error err;
        int status = -1;
        pid_t pid = fork();
        if (pid == 0) {
                if (pages_take(ranges, size, &err) < 0)
                        _exit(1);
                pages_populate();
                _exit(0);
        }
        return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static void a_range_that_cannot_be_written_to_harms_nobody(void)
{
        if (madvise(NULL, 0, MADV_POPULATE_WRITE) < 0)
                SKIP("MADV_POPULATE_WRITE is there from Linux 5.14 on");
        char *bytes = three_pages();
        struct told ranges[] = { { (uintptr_t)bytes, page }, { (uintptr_t)bytes + page, page }, { (uintptr_t)bytes + 2 * page, page } };
        CHECK(populated(ranges, sizeof ranges) == 0);
        munmap(bytes + 2 * page, page);
        CHECK(populated(ranges, sizeof ranges) == 0);
        munmap(bytes, 2 * page);
        CHECK(populated(ranges, sizeof ranges) == 0);
}

static void what_is_no_list_of_ranges_is_refused(void)
{
        struct csn_error err;
        struct told range = { 0 };
        CHECK(pages_take(&range, sizeof range - 1, &err) == -CSN_E_INPUT);
        CHECK(pages_take(&range, 0, &err) == 0);
}

int main(void)
{
        page = (size_t)sysconf(_SC_PAGESIZE);
        RUN(what_may_be_written_to_is_told_and_nothing_else);
        RUN(a_range_that_cannot_be_written_to_harms_nobody);
        RUN(what_is_no_list_of_ranges_is_refused);
        return tap_done();
}
