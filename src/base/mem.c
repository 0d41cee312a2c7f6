/* Memory with owners: plain allocations that never return NULL, and arenas. */
#include "base/base.h"

#include <stdio.h>

static _Noreturn void out_of_memory(size_t size)
{
        char line[96];
        int len = snprintf(line, sizeof line, "caisson: out of memory (%zu bytes)\n", size);
        if (len > 0 && write(STDERR_FILENO, line, (size_t)len) < 0)
                _exit(125);
        _exit(125);
}

void *mem_alloc(size_t size)
{
        void *p = calloc(1, size ? size : 1);
        if (!p)
                out_of_memory(size);
        return p;
}

void *mem_resize(void *old, size_t size)
{
        void *p = realloc(old, size ? size : 1);
        if (!p)
                out_of_memory(size);
        return p;
}

char *mem_copy(const char *text, size_t len)
{
        char *p = mem_alloc(len + 1);
        if (len)
                memcpy(p, text, len);
        return p;
}

#define ARENA_BLOCK (8 * KIB - 64)

struct arena_block {
        struct arena_block *next;
        size_t used;
        size_t size;
        _Alignas(max_align_t) char bytes[];
};

void *arena_alloc(struct arena *arena, size_t size)
{
        size_t need = (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
        struct arena_block *block = arena->blocks;
        if (!block || block->size - block->used < need) {
                size_t room = need > ARENA_BLOCK ? need : ARENA_BLOCK;
                block = mem_alloc(sizeof *block + room);
                block->size = room;
                block->next = arena->blocks;
                arena->blocks = block;
        }
        void *p = block->bytes + block->used;
        block->used += need;
        return p;
}

char *arena_copy(struct arena *arena, const char *text, size_t len)
{
        char *p = arena_alloc(arena, len + 1);
        if (len)
                memcpy(p, text, len);
        return p;
}

char *arena_text(struct arena *arena, const char *fmt, ...)
{
        va_list args, again;
        va_start(args, fmt);
        va_copy(again, args);
        /*
         * Print at the final place, if there is room: most texts are then printed once, and not a second time for their
         * length.
         */
        struct arena_block *block = arena->blocks;
        size_t room = block ? block->size - block->used : 0;
        char *there = block ? block->bytes + block->used : NULL;
        int len = vsnprintf(there, room, fmt, args);
        va_end(args);
        if (len < 0 && room)
                memset(there, 0, room);
        char *p = arena_alloc(arena, len < 0 ? 1 : (size_t)len + 1);
        if (len >= 0 && p != there)
                vsnprintf(p, (size_t)len + 1, fmt, again);
        va_end(again);
        return p;
}

void arena_join(struct arena *arena, struct arena *other)
{
        struct arena_block **end = &arena->blocks;
        while (*end)
                end = &(*end)->next;
        *end = other->blocks;
        other->blocks = NULL;
}

bool arena_is_large(const struct arena *arena, size_t size)
{
        size_t sum = 0;
        for (const struct arena_block *block = arena->blocks; block && sum < size; block = block->next)
                sum += block->size;
        return sum >= size;
}

void arena_done(struct arena *arena)
{
        for (struct arena_block *block = arena->blocks, *next; block; block = next) {
                next = block->next;
                free(block);
        }
        arena->blocks = NULL;
}
