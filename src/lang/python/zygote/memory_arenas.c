#include "lang/python/zygote/memory_arenas.h"

#include <sys/mman.h>

/* Include/cpython/objimpl.h: for all versions the same since 3.4, but not of the limited API. */
struct allocator {
        void *context;
        void *(*alloc)(void *context, size_t size);
        void (*free)(void *context, void *arena, size_t size);
};

extern void PyObject_GetArenaAllocator(struct allocator *ret) __attribute__((weak));
extern void PyObject_SetArenaAllocator(struct allocator *allocator) __attribute__((weak));

#define REGION (64 * MIB)

/* Each place has, or had, an arena of its size. */
static struct {
        char *place;
        size_t number;
        bool used;
} arenas[ARENAS_MAX];

static struct allocator of_python;
static size_t arenas_n, arena_size, made;
static char *region, *region_end;   /* room without any arena yet */

static bool add_region(void)
{
        char *memory = mmap(NULL, REGION + HUGE_PAGE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
                return false;
        size_t before = (HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE) % HUGE_PAGE;
        if (before)
                munmap(memory, before);
        munmap(memory + before + REGION, HUGE_PAGE - before);
        if (region < region_end)
                munmap(region, (size_t)(region_end - region));
        region = memory + before;
        region_end = region + REGION;
        return true;
}

/* A place for an arena: a free place, or a new place.  Returns its number, or ARENAS_MAX. */
static size_t find_place(size_t size)
{
        for (size_t i = 0; i < arenas_n; i++)
                if (!arenas[i].used)
                        return i;
        if (arenas_n == ARENAS_MAX || ((size_t)(region_end - region) < size && !add_region()))
                return ARENAS_MAX;
        arenas[arenas_n].place = region;
        region += size;
        return arenas_n++;
}

static void *new_arena(void *context, size_t size)
{
        arena_size = arena_size ? arena_size : size;
        size_t i = size == arena_size && size <= REGION ? find_place(size) : ARENAS_MAX;
        if (i == ARENAS_MAX)
                return of_python.alloc(context, size);
        arenas[i].used = true;
        arenas[i].number = ++made;
        return arenas[i].place;
}

/* The place stays for the next arena: other memory there would lie between arenas. */
static void free_arena(void *context, void *arena, size_t size)
{
        for (size_t i = 0; i < arenas_n; i++)
                if (arenas[i].place == arena) {
                        madvise(arena, size, MADV_DONTNEED);
                        arenas[i].used = false;
                        return;
                }
        of_python.free(context, arena, size);
}

void arenas_gather(void)
{
        if (!PyObject_GetArenaAllocator || !PyObject_SetArenaAllocator || of_python.alloc)
                return;
        PyObject_GetArenaAllocator(&of_python);
        struct allocator ours = { .context = of_python.context, .alloc = new_arena, .free = free_arena };
        PyObject_SetArenaAllocator(&ours);
}

size_t arenas_made(void)
{
        return made;
}

size_t arenas_number(uintptr_t place)
{
        for (size_t i = 0; i < arenas_n; i++)
                if (place - (uintptr_t)arenas[i].place < arena_size)
                        return arenas[i].number;
        return 0;
}

size_t arenas_gathered(struct range ret[ARENAS_MAX])
{
        size_t n = 0;
        if (!of_python.alloc)
                return 0;
        /* CPython's own function frees an arena by munmap(2), which fits ours, too. */
        PyObject_SetArenaAllocator(&of_python);
        if (region < region_end)
                munmap(region, (size_t)(region_end - region));
        for (size_t i = 0; i < arenas_n; i++) {
                struct range *last = n ? &ret[n - 1] : NULL;
                uint64_t place = (uintptr_t)arenas[i].place;
                if (!arenas[i].used)
                        munmap(arenas[i].place, arena_size);
                else if (last && last->start + last->len == place)
                        last->len += arena_size;
                else
                        ret[n++] = (struct range){ place, arena_size };
        }
        return n;
}
