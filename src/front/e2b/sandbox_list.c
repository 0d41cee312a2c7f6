/* Find a sandbox, and wait for a change of its state; sandbox.c makes the changes. */
#include "front/e2b/e2b.h"

struct e2b_sandbox *e2b_sandbox_find(const struct service *service, const char *id, const char *tenant)
{
        for (struct e2b_sandbox *sandbox = e2b_of(service)->sandboxes; sandbox; sandbox = sandbox->next)
                if (sandbox->state != E2B_MAKING && strcmp(sandbox->id, id) == 0 &&
                        (!tenant[0] || strcmp(sandbox->tenant, tenant) == 0))
                        return sandbox;
        return NULL;
}

bool e2b_sandbox_is_paused(const struct e2b_sandbox *sandbox)
{
        return sandbox->state == E2B_PAUSED || sandbox->state == E2B_RESUMING;
}

void e2b_wait(struct e2b_sandbox *sandbox, enum e2b_want want, struct e2b_waiter *waiter)
{
        waiter->sandbox = sandbox;
        waiter->want = want;
        waiter->next = sandbox->waiters;
        sandbox->waiters = waiter;
}

void e2b_unwait(struct e2b_waiter *waiter)
{
        if (!waiter->sandbox)
                return;
        for (struct e2b_waiter **at = &waiter->sandbox->waiters; *at; at = &(*at)->next)
                if (*at == waiter) {
                        *at = waiter->next;
                        break;
                }
        waiter->sandbox = NULL;
}

/* A callback may take other waiters off the list, so the search starts again after each. */
void e2b_notify(struct e2b_sandbox *sandbox, enum e2b_want want, const struct csn_error *error)
{
        for (struct e2b_waiter *waiter = sandbox->waiters; waiter;) {
                if (waiter->want != want) {
                        waiter = waiter->next;
                        continue;
                }
                e2b_unwait(waiter);
                waiter->done(waiter, error);
                waiter = sandbox->waiters;
        }
}

/* Found by name: the front refers to the files of the folder, so no file refers to the front. */
struct e2b *e2b_of(const struct service *service)
{
        size_t i = 0;
        while (strcmp(service->fronts[i]->name, "e2b") != 0)
                i++;
        return service->states[i];
}
