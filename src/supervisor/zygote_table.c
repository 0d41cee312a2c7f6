/* Zygotes by their numbers, for zygotes.c and for jobs that ask a zygote to fork. */
#include "supervisor/zygote.h"

struct zygote *zygote_find(struct supervisor *sup, uint32_t id)
{
        for (struct zygote *zygote = sup->zygotes; zygote; zygote = zygote->next)
                if (zygote->id == id)
                        return zygote;
        return NULL;
}

struct send_queue *zygote_send_queue(struct domain *domain, uint32_t id, bool *ret_known)
{
        struct zygote *zygote = zygote_find(domain->sup, id);
        *ret_known = zygote && !zygote->told && zygote->domain == domain;
        if (!*ret_known || !zygote->serves)
                return NULL;
        zygote->forks++;
        if (zygote->asked++ == 0)
                loop_timer(domain->sup->loop, &zygote->deadline, HELPER_ANSWER_MS * 1000ULL);
        return &zygote->requests;
}
