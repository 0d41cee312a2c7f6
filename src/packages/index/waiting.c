/* Lists of waiters; see index_private.h. */
#include "packages/index/index_private.h"

void waiters_add(struct waiter **list, struct waiter *waiter)
{
        waiter->next = *list;
        waiter->active = true;
        *list = waiter;
}

void waiters_remove(struct waiter **list, struct waiter *waiter)
{
        for (struct waiter **at = list; *at; at = &(*at)->next)
                if (*at == waiter) {
                        *at = waiter->next;
                        break;
                }
        waiter->active = false;
}

void waiters_call(struct waiter **list)
{
        for (struct waiter *waiter; (waiter = *list);) {
                waiters_remove(list, waiter);
                waiter->ready(waiter);
        }
}
