#include "lang/python/zygote/memory_padding.h"

#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "lang/python/zygote/memory_arenas.h"

/*
 * CPython has pools of 16 KiB for each size (Objects/obmalloc.c, 3.10 and on).  A pool gives freed blocks first, and
 * then unused room, from the first to the last.  With pools of another kind FILL_MAX ends the padding, for good, and
 * only so much memory is lost.
 */
#define SIZES_MAX 512
#define SIZE_STEP 16
#define POOL_SIZE 16384
#define ROOM 1536        /* bytes for a run, in blocks of the same size */
#define FILL_MAX (8 * MIB)   /* in blocks of the same size */

struct pool {
        uint32_t count;
        uintptr_t free;
        void *next, *previous;
        uint32_t arena, size_class, next_offset, max_next_offset;
};

static struct {
        size_t arena;      /* its number */
        uintptr_t heap;    /* its beginning */
} new;

/*
 * Whether the next block of this size will be behind this block, in unused room, and in the page of the pool's own
 * numbers.
 */
static bool is_last(uintptr_t at, size_t size)
{
        const struct pool *pool = (const struct pool *)(at / POOL_SIZE * POOL_SIZE);
        return arenas_number(at) >= new.arena && pool->free == at + size &&
                pool->next_offset == at % POOL_SIZE + 2 * size && pool->next_offset + ROOM <= maps_page();
}

static bool fill_pool(size_t size)
{
        for (size_t i = 0; i < FILL_MAX / size; i++) {
                uintptr_t at = (uintptr_t)PyObject_Malloc(size);
                if (!arenas_number(at))
                        return false;
                if (is_last(at, size))
                        return true;
        }
        return false;
}

static void fill_pools(void)
{
        static bool is_other;
        for (size_t size = SIZE_STEP; size <= SIZES_MAX && !is_other; size += SIZE_STEP)
                is_other = !fill_pool(size);
}

static void begin_arena(void)
{
        size_t before = arenas_made();
        for (size_t i = 0; i < FILL_MAX / SIZES_MAX && arenas_made() == before; i++)
                if (!arenas_number((uintptr_t)PyObject_Malloc(SIZES_MAX)))
                        break;
        new.arena = arenas_made();
}

/* ---- malloc(3) ---- */

#define PIECE (64 * KIB)         /* blocks up to this size are never mapped alone */
#define LARGE 1040               /* smaller blocks are kept by size (malloc/malloc.c, tcache and small bins) */
#define HEAP_STEP 16
#define AHEAD 8                  /* pieces, for a run; memory asked of the kernel is in no file */

/* Take all old blocks of a size.  The last block is new, and is given back. */
static void take(size_t size)
{
        for (size_t i = 0; i < FILL_MAX / HEAP_STEP; i++) {
                void *at = malloc(size);
                if ((uintptr_t)at < new.heap)
                        continue;
                free(at);
                break;
        }
}

static void fill_heap(void)
{
        for (size_t size = PIECE / 2; size > LARGE; size -= size / 8 / HEAP_STEP * HEAP_STEP)
                take(size);
        for (size_t size = LARGE; size > 0; size -= HEAP_STEP)
                take(size);
}

static void begin_heap(void)
{
        void *ahead[AHEAD];
        new.heap = ((uintptr_t)sbrk(0) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        take(PIECE);
        for (size_t i = 0; i < AHEAD; i++)
                ahead[i] = malloc(PIECE);
        for (size_t i = AHEAD; i-- > 0;)
                free(ahead[i]);
}

void room_fill(void)
{
        PyGC_Collect();
        fill_heap();
        fill_pools();
}

void room_begin(void)
{
        PyGC_Collect();
        begin_arena();
        begin_heap();
        room_fill();
}
