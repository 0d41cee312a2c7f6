/* Names and tables; see symbols.h. */
#include "policy/analysis/symbols.h"

void *list_room(void *list, size_t n, size_t *size, size_t each)
{
        if (n < *size)
                return list;
        *size = *size ? 2 * *size : 64;
        return mem_resize(list, *size * each);
}

uint64_t index_hash(uint32_t a, uint32_t b)
{
        uint64_t h = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15U;
        return h ^ h >> 31;
}

static void put(struct index *index, uint64_t hash, uint32_t place)
{
        size_t at = hash & (index->size - 1);
        while (index->slots[at].place)
                at = (at + 1) & (index->size - 1);
        index->slots[at] = (struct slot){ hash, place + 1 };
        index->n++;
}

void index_add(struct index *index, uint64_t hash, uint32_t place)
{
        if (2 * (index->n + 1) > index->size) {
                struct index old = *index;
                index->size = old.size ? 2 * old.size : 256;
                index->slots = mem_alloc(index->size * sizeof *index->slots);
                index->n = 0;
                for (size_t i = 0; i < old.size; i++)
                        if (old.slots[i].place)
                                put(index, old.slots[i].hash, old.slots[i].place - 1);
                free(old.slots);
        }
        put(index, hash, place);
}

uint32_t index_next(const struct index *index, uint64_t hash, size_t *at)
{
        while (index->size) {
                const struct slot *slot = &index->slots[(hash + (*at)++) & (index->size - 1)];
                if (!slot->place)
                        return NAMES_NONE;
                if (slot->hash == hash)
                        return slot->place - 1;
        }
        return NAMES_NONE;
}

uint32_t names_intern(struct names *names, struct arena *arena, const char *text, size_t len)
{
        uint64_t hash = hash_text(text, len);
        uint32_t place;
        for (size_t at = 0; (place = index_next(&names->index, hash, &at)) != NAMES_NONE;)
                if (names->list[place].len == len && memcmp(names->list[place].text, text, len) == 0)
                        return place;
        names->list = list_room(names->list, names->n, &names->size, sizeof *names->list);
        names->list[names->n] = (struct name){ arena_copy(arena, text, len), len };
        index_add(&names->index, hash, (uint32_t)names->n);
        return (uint32_t)names->n++;
}

void names_done(struct names *names)
{
        free(names->list);
        free(names->index.slots);
        *names = (struct names){ 0 };
}
