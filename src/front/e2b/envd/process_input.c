/* Requests waiting for a program: to accept their bytes as input, or to end. */
#include "front/e2b/envd/process.h"

/* Not in a list. */
static void waiting_drop(struct envd_waiting *waiting)
{
        loop_untimer(waiting->process->loop, &waiting->patience);
        waiting->request->gone = NULL;
        free(waiting);
}

void envd_waiting_free(struct envd_waiting *waiting)
{
        for (struct envd_waiting **at = waiting->list; *at; at = &(*at)->next)
                if (*at == waiting) {
                        *at = waiting->next;
                        break;
                }
        waiting_drop(waiting);
}

struct http_request *envd_waiting_take(struct envd_waiting **list)
{
        struct envd_waiting *first = *list;
        struct http_request *request = first->request;
        *list = first->next;
        waiting_drop(first);
        return request;
}

static void on_waiting_gone(struct http_request *request)
{
        envd_waiting_free(request->owner);
}

struct envd_waiting *envd_waiting_new(struct envd_waiting **list, struct envd_process *process,
        struct http_request *request)
{
        struct envd_waiting *waiting = mem_alloc(sizeof *waiting);
        *waiting = (struct envd_waiting){ .list = list, .process = process, .request = request };
        while (*list)
                list = &(*list)->next;
        *list = waiting;
        request->owner = waiting;
        request->gone = on_waiting_gone;
        return waiting;
}

void envd_waiting_answer(struct envd_waiting **list, void (*answer)(struct http_request *))
{
        while (*list)
                answer(envd_waiting_take(list));
}

void envd_answer_empty(struct http_request *request)
{
        rpc_answer(request, json_object());
}

void envd_send_input(struct guest_call *call)
{
        struct envd_process *process = call->owner;
        while (process->inputs) {
                struct envd_waiting *waiting = process->inputs;
                while (waiting->at < waiting->bytes.len) {
                        size_t room = GUEST_IN_MAX - (size_t)min_u64(process->in_flight, GUEST_IN_MAX);
                        size_t n = min_u64(min_u64(room, waiting->bytes.len - waiting->at), GUEST_DATA_MAX);
                        if (!n || !guest_call_send(call, GUEST_IN, waiting->bytes.bytes + waiting->at, n))
                                return;
                        process->in_flight += n;
                        waiting->at += n;
                }
                if (waiting->ends && !guest_call_send(call, GUEST_IN_END, "", 0))
                        return;
                if (waiting->ends)
                        process->input = false;
                envd_answer_empty(envd_waiting_take(&process->inputs));
        }
}
