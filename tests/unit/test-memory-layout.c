#include "lang/python/zygote/memory_layout.h"

#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lang/python/zygote/memory_arenas.h"
#include "tap.h"

#define ARENA MIB

static size_t page;

/* ---- as Python has them ---- */

struct allocator {
        void *context;
        void *(*alloc)(void *context, size_t size);
        void (*free)(void *context, void *arena, size_t size);
};

static void *map_arena(void *context, size_t size)
{
        (void)context;
        return maps_memory(size);
}

static void unmap_arena(void *context, void *arena, size_t size)
{
        (void)context;
        munmap(arena, size);
}

static struct allocator python = { NULL, map_arena, unmap_arena };

void PyObject_GetArenaAllocator(struct allocator *ret);
void PyObject_SetArenaAllocator(struct allocator *allocator);

void PyObject_GetArenaAllocator(struct allocator *ret)
{
        *ret = python;
}

void PyObject_SetArenaAllocator(struct allocator *allocator)
{
        python = *allocator;
}

/* ---- what is mapped where ---- */

static struct mapping mapping_of(const void *byte)
{
        static struct maps maps;
        struct csn_error err;
        CHECK(maps_read(&maps, &err) == 0);
        for (size_t i = 0; i < maps.n; i++)
                if ((uintptr_t)byte - maps.rows[i].range.start < maps.rows[i].range.len)
                        return maps.rows[i];
        return (struct mapping){ 0 };
}

static bool is_in_file(const void *byte)
{
        struct mapping one = mapping_of(byte);
        return one.inode != 0 && !one.of_file;
}

static bool is_all(const char *bytes, char value, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (bytes[i] != value)
                        return false;
        return true;
}

static int child(bool (*passes)(char *bytes), char *bytes)
{
        int status = -1;
        pid_t pid = fork();
        if (pid == 0)
                _exit(passes(bytes) ? 0 : 1);
        return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static bool writes_everywhere(char *bytes)
{
        for (size_t i = 0; i < ARENA; i += page)
                bytes[i] = 'w';
        return bytes[0] == 'w' && bytes[1] == 'a';
}

/* ---- arenas ---- */

static void arenas_lie_side_by_side(void)
{
        static struct range found[ARENAS_MAX];
        struct csn_error err;
        char *four[4];
        arenas_gather();
        for (size_t i = 0; i < ARRAY_LEN(four); i++) {
                four[i] = python.alloc(python.context, ARENA);
                memset(four[i], 'a', ARENA);
        }
        CHECK((uintptr_t)four[0] % HUGE_PAGE == 0);
        CHECK(four[1] == four[0] + ARENA && four[2] == four[1] + ARENA && four[3] == four[2] + ARENA);
        python.free(python.context, four[2], ARENA);
        char *again = python.alloc(python.context, ARENA);
        CHECK(again == four[2] && is_all(again, 0, ARENA));   /* its place, and fresh memory */
        memset(again, 'a', ARENA);
        char *other = python.alloc(python.context, ARENA / 4);   /* another size is not ours to place */
        CHECK(other && (other < four[0] || other >= four[3] + ARENA));
        python.free(python.context, four[1], ARENA);
        size_t n = arenas_gathered(found);
        CHECK(python.alloc == map_arena && python.free == unmap_arena);
        /* The one that was freed is there no more. */
        CHECK(n == 2 && found[0].start == (uintptr_t)four[0] && found[0].len == ARENA &&
                found[1].start == (uintptr_t)again && found[1].len == 2 * ARENA);
        CHECK(mapping_of(four[1]).range.len == 0);

        CHECK(shared_settle(found, n, &err) == 0);
        CHECK(is_in_file(four[0]) && is_in_file(again) && is_in_file(four[3]));
        CHECK(is_all(four[0], 'a', ARENA) && is_all(again, 'a', ARENA) && is_all(four[3], 'a', ARENA));
        CHECK(child(writes_everywhere, four[0]) == 0 && is_all(four[0], 'a', ARENA));
        CHECK(child(writes_everywhere, four[0]) == 0);   /* and not what the other one wrote */
        python.free(python.context, four[0], ARENA);
        CHECK(mapping_of(four[0]).range.len == 0);
}

/* ---- the heap ---- */

static bool goes_on_with_the_heap(char *bytes)
{
        char *all[64];
        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
                all[i] = malloc(100 * KIB);
                memset(all[i], (int)i, 100 * KIB);
        }
        for (size_t i = 0; i < ARRAY_LEN(all); i += 2)
                free(all[i]);
        bytes = realloc(bytes, 300 * KIB);
        if (!bytes || !is_all(bytes, 'h', 100 * KIB))
                return false;
        malloc_trim(0);
        char *zeros = calloc(1, 200 * KIB);
        if (!zeros || !is_all(zeros, 0, 200 * KIB))
                return false;
        for (size_t i = 1; i < ARRAY_LEN(all); i += 2) {
                if (!is_all(all[i], (char)i, 100 * KIB))
                        return false;
                free(all[i]);
        }
        free(zeros);
        free(bytes);
        malloc_trim(0);
        zeros = calloc(1, 100 * KIB);
        return zeros && is_all(zeros, 0, 100 * KIB);
}

static void the_heap_is_one_as_before(void)
{
        struct csn_error err;
        char *blocks[80];
        for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {   /* 8 MiB, each block below what malloc(3) gets by mmap(2) */
                blocks[i] = malloc(100 * KIB);
                memset(blocks[i], 'h', 100 * KIB);
        }
        for (size_t i = 3; i < ARRAY_LEN(blocks); i += 3)
                free(blocks[i]);
        CHECK(shared_settle(NULL, 0, &err) == 0);
        CHECK(is_in_file(blocks[1]) && is_all(blocks[1], 'h', 100 * KIB));
        CHECK(child(goes_on_with_the_heap, blocks[1]) == 0 && child(goes_on_with_the_heap, blocks[2]) == 0);
        CHECK(is_all(blocks[1], 'h', 100 * KIB) && is_all(blocks[2], 'h', 100 * KIB));
        CHECK(goes_on_with_the_heap(blocks[1]));   /* so does who settled */
}

/* ---- text ---- */

/*
 * A file as the linker makes them: a page, text of a huge page, a page, one of data, and one more; only text may be
 * executed.
 */
struct program {
        char *header, *text, *rodata, *data, *rest;
};

static size_t program_bytes(void)
{
        return HUGE_PAGE + 4 * page;
}

static struct program map_program(bool used)
{
        char name[] = "/tmp/test-shared-XXXXXX", *bytes = malloc(program_bytes());
        int fd = mkstemp(name);
        memset(bytes, 't', program_bytes());
        CHECK(fd >= 0 && unlink(name) == 0 && io_write_all(fd, bytes, program_bytes()) == 0);
        free(bytes);
        char *room = mmap(NULL, 4 * HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *text = room + HUGE_PAGE + (HUGE_PAGE - (uintptr_t)room % HUGE_PAGE) % HUGE_PAGE;
        struct program program = { text - page, text, text + HUGE_PAGE, text + HUGE_PAGE + page,
                text + HUGE_PAGE + 2 * page };
        CHECK(mmap(program.header, program_bytes(), PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == program.header);
        CHECK(mprotect(text, HUGE_PAGE, PROT_READ | PROT_EXEC) == 0);
        CHECK(mprotect(program.data, page, PROT_READ | PROT_WRITE) == 0);
        *program.data = 'd';
        for (size_t i = 0; used && i < HUGE_PAGE; i += page)
                CHECK(*(volatile char *)(text + i) == 't');
        close(fd);
        return program;
}

static void what_belongs_to_text_is_one_mapping_with_it(void)
{
        struct csn_error err;
        struct program program = map_program(false);
        CHECK(shared_settle(NULL, 0, &err) == 0);
        struct mapping text = mapping_of(program.text), written = mapping_of(program.data),
                       rest = mapping_of(program.rest);
        CHECK(text.range.start == (uintptr_t)program.header && text.range.len == HUGE_PAGE + 2 * page && text.of_file);
        CHECK(text.rights == (PROT_READ | PROT_EXEC));
        CHECK(written.rights == (PROT_READ | PROT_WRITE) && written.of_file && program.data[0] == 'd' &&
                program.data[1] == 't');
        CHECK(rest.rights == PROT_READ && *program.rest == 't');
        munmap(program.header, program_bytes());
}

/* ---- what a library may write to ---- */

static const char *const relocated[] = { "relocated", "by the linker" };
static char data[3] = "d", zeros[100 * KIB];

static bool writes_over(char *bytes)
{
        memset(bytes, 'w', sizeof zeros);
        data[0] = 'w';
        return is_all(bytes, 'w', sizeof zeros) && strcmp(relocated[1], "by the linker") == 0;
}

static void what_a_library_writes_to_is_one_mapping(void)
{
        struct csn_error err;
        zeros[5] = 'z';
        CHECK(shared_settle(NULL, 0, &err) == 0);
        struct mapping own = mapping_of(data);
        CHECK(is_in_file(data) && own.rights == (PROT_READ | PROT_WRITE));
        CHECK(mapping_of(relocated).range.start == own.range.start &&
                mapping_of(zeros + sizeof zeros - 1).range.start == own.range.start);
        CHECK(child(writes_over, zeros) == 0);
        CHECK(strcmp(data, "d") == 0 && zeros[4] == 0 && zeros[5] == 'z' && strcmp(relocated[0], "relocated") == 0);
        CHECK(writes_over(zeros));   /* so does who settled */
        CHECK(shared_settle(NULL, 0, &err) == 0 && data[0] == 'w' && is_all(zeros, 'w', sizeof zeros));
        data[0] = 'd';
        memset(zeros, 0, sizeof zeros);
}

static bool has_huge_pages_of_files(void)
{
        char *room = maps_memory(2 * HUGE_PAGE), *place = room + (HUGE_PAGE - (uintptr_t)room % HUGE_PAGE) % HUGE_PAGE;
        int fd = memfd_create("test", MFD_CLOEXEC);
        static char block[HUGE_PAGE];
        bool has = fd >= 0 && io_write_all(fd, block, sizeof block) == 0 &&
                mmap(place, HUGE_PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == place &&
                madvise(place, HUGE_PAGE, 25 /* MADV_COLLAPSE */) == 0;
        close(fd);
        munmap(room, 2 * HUGE_PAGE);
        return has;
}

static bool writes_to_its_own_text(char *text)
{
        if (mprotect(text, page, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
                return false;
        memset(text, 'w', page);
        return text[page] == 't';
}

/* Root may open what is mapped. */
static const char *path_of(const struct mapping *one)
{
        static char path[100];
        snprintf(path, sizeof path, "/proc/self/map_files/%" PRIx64 "-%" PRIx64, one->range.start,
                one->range.start + one->range.len);
        return path;
}

static bool can_write_to_the_file_of(const struct mapping *one)
{
        int fd = open(path_of(one), O_RDWR);
        bool can = fd >= 0 && (pwrite(fd, "w", 1, (off_t)one->offset) == 1 || ftruncate(fd, 0) == 0);
        if (fd >= 0)
                close(fd);
        return can;
}

static void text_that_is_used_is_in_huge_pages(void)
{
        struct csn_error err;
        struct program program = map_program(true);
        char *text = program.text;
        if (!has_huge_pages_of_files())
                SKIP("this kernel has no huge pages for files (MADV_COLLAPSE)");
        CHECK(shared_settle(NULL, 0, &err) == 0);
        struct mapping one = mapping_of(text);
        CHECK(is_in_file(text) && one.rights == (PROT_READ | PROT_EXEC) && is_all(text, 't', HUGE_PAGE));
        CHECK(child(writes_to_its_own_text, text) == 0 && is_all(text, 't', page));
        CHECK(!can_write_to_the_file_of(&one) && is_all(text, 't', page));
        munmap(program.header, program_bytes());
}

/* A run can have any mapping grow, and what a file has room for would be memory that outlives the run. */
static void files_have_no_room_that_a_run_could_fill(void)
{
        static struct maps maps;
        struct csn_error err;
        struct program programs[] = { map_program(true), map_program(false) };
        size_t seen = 0;
        CHECK(shared_settle(NULL, 0, &err) == 0 && maps_read(&maps, &err) == 0);
        for (size_t i = 0; i < maps.n; i++) {
                uint64_t first = UINT64_MAX, end = 0;
                struct stat about;
                if (!maps.rows[i].inode || maps.rows[i].of_file)
                        continue;
                if (stat(path_of(&maps.rows[i]), &about) < 0)
                        SKIP("needs the right to look at what is mapped (CAP_CHECKPOINT_RESTORE)");
                for (size_t k = 0; k < maps.n; k++) {
                        const struct mapping *one = &maps.rows[k];
                        if (one->inode == maps.rows[i].inode && !one->of_file) {
                                first = min_u64(first, one->offset);
                                end = max_u64(end, one->offset + one->range.len);
                        }
                }
                seen++;
                CHECK((uint64_t)about.st_size == end && (uint64_t)about.st_blocks * 512 + first >= end &&
                        (about.st_mode & 0777) == 0);
        }
        CHECK(seen > 3);
        for (size_t i = 0; i < ARRAY_LEN(programs); i++)
                munmap(programs[i].header, program_bytes());
}

static void text_that_is_not_used_is_forgotten(void)
{
        static uint64_t entries[PAGE_ENTRIES_MAX];
        struct csn_error err;
        struct program program = map_program(true);
        char *text = program.text;
        struct range range = { (uintptr_t)text, HUGE_PAGE };
        int table = maps_table(&err);
        CHECK(table >= 0 && maps_entries(table, &range, 0, entries, &err) == (ssize_t)(HUGE_PAGE / page) &&
                entries[7] & PAGE_PRESENT);
        CHECK(shared_forget_text(&err) == 0);
        CHECK(maps_entries(table, &range, 0, entries, &err) == (ssize_t)(HUGE_PAGE / page) &&
                !(entries[7] & PAGE_PRESENT));
        CHECK(is_all(text, 't', page));
        close(table);
        munmap(program.header, program_bytes());
}

int main(void)
{
        page = (size_t)sysconf(_SC_PAGESIZE);
        RUN(files_have_no_room_that_a_run_could_fill);   /* first, for others unmap some of a file */
        RUN(arenas_lie_side_by_side);
        RUN(the_heap_is_one_as_before);
        RUN(what_belongs_to_text_is_one_mapping_with_it);
        RUN(what_a_library_writes_to_is_one_mapping);
        RUN(text_that_is_used_is_in_huge_pages);
        RUN(text_that_is_not_used_is_forgotten);
        return tap_done();
}
