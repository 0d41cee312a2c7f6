/* Ids from the beginning of an id, options, and requests with errors as the end of the command. */
#include "front/remote/remote.h"

int remote_ask(struct remote *remote, const char *method, const char *path, json_t *body, json_t **ret)
{
        struct csn_error err;
        return link_ask(&remote->link, method, path, body, ret, &err) < 0 ? remote_fail(&err) : 0;
}

int remote_make(struct remote *remote, const char *path, json_t *body)
{
        json_t *answer = NULL;
        int status = remote_ask(remote, "POST", path, body, &answer);
        if (status == 0 && remote_option(remote, "json"))
                cli_print_json(json_incref(answer));
        else if (status == 0)
                puts(remote_text(answer, "id"));
        json_decref(answer);
        return status;
}

const char *remote_text(json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));
        return text ? text : "";
}

const char *remote_option(const struct remote *remote, const char *name)
{
        for (size_t i = remote->given_n; i > 0; i--)   /* the last wins */
                if (strcmp(remote->given[i - 1].name, name) == 0)
                        return remote->given[i - 1].value;
        return NULL;
}

/* ---- ids ---- */

#define ID_LENGTH 36               /* "sbx_" and 32 digits */

static bool begins(const char *id, const char *typed)
{
        const char *digits = id + 4;       /* behind "sbx_" or "ctx_" */
        return strncmp(id, typed, strlen(typed)) == 0 || strncmp(digits, typed, strlen(typed)) == 0;
}

struct search {
        const char *typed, *found;
        size_t n;
};

static void look_at(struct search *search, json_t *list, struct arena *arena)
{
        size_t i;
        json_t *one;
        json_array_foreach(list, i, one) {
                const char *id = remote_text(one, "id");
                if (strlen(id) > 4 && begins(id, search->typed)) {
                        search->found = arena_text(arena, "%s", id);
                        search->n++;
                }
        }
}

static const char *found(const struct search *search, const char *what)
{
        if (search->n == 1)
                return search->found;
        if (search->n)
                fprintf(stderr, "caisson: %zu %ses begin with %s; give more of the id\n", search->n, what,
                        search->typed);
        else
                fprintf(stderr, "caisson: there is no %s %s; see caisson %s list\n", what, search->typed, what);
        return NULL;
}

static bool is_whole(const char *typed, const char *kind)
{
        return strlen(typed) == ID_LENGTH && strncmp(typed, kind, 4) == 0 &&
                strspn(typed + 4, "0123456789abcdef") == ID_LENGTH - 4;
}

int remote_ask_list(struct remote *remote, const char *path, const char *name, json_t **ret)
{
        json_t *all = json_array(), *answer = NULL;
        const char *next = "";
        int status = 0;
        while (status == 0 && next) {
                status = remote_ask(remote, "GET",
                        next[0] ? arena_text(&remote->arena, "%s?cursor=%s", path, next) : path, NULL, &answer);
                json_array_extend(all, json_object_get(answer, name));
                const char *told = json_string_value(json_object_get(answer, "next"));
                next = told ? arena_text(&remote->arena, "%s", told) : NULL;
                json_decref(answer);
                answer = NULL;
        }
        *ret = all;
        return status;
}

const char *remote_sandbox(struct remote *remote, const char *typed)
{
        struct search search = { .typed = typed };
        json_t *answer = NULL;
        if (is_whole(typed, "sbx_"))
                return typed;
        remote->failed = remote_ask_list(remote, "/v1/sandboxes", "sandboxes", &answer);
        if (typed[0] && !remote->failed)
                look_at(&search, answer, &remote->arena);
        json_decref(answer);
        if (remote->failed)
                return NULL;
        remote->failed = csn_code_exit(CSN_E_INPUT);
        return found(&search, "sandbox");
}

const char *remote_context(struct remote *remote, const char *typed)
{
        struct search search = { .typed = typed };
        json_t *answer = NULL, *one;
        size_t i;
        if (is_whole(typed, "ctx_"))
                return typed;
        int status = remote_ask_list(remote, "/v1/sandboxes", "sandboxes", &answer);
        json_array_foreach(answer, i, one) {
                json_t *contexts = NULL;
                if (status == 0 && typed[0])
                        status = remote_ask_list(remote,
                                arena_text(&remote->arena, "/v1/sandboxes/%s/contexts", remote_text(one, "id")),
                                "contexts", &contexts);
                look_at(&search, contexts, &remote->arena);
                json_decref(contexts);
        }
        json_decref(answer);
        remote->failed = status ? status : csn_code_exit(CSN_E_INPUT);
        return status ? NULL : found(&search, "context");
}
