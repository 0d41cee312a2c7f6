/*
 * The description of run_code for a model: GET /v1/describe as text, GET /v1/tool-schema as the definition of a tool.
 *
 * ?session=ID adds the files then in the home directory of a session; the guest makes the list.
 */
#include "front/api/api.h"

#include "engine/persistent/guest_call.h"

#include <stdio.h>

#define FILES_TOLD 1000                    /* names of files in a description; others are left out */

struct telling {
        struct guest_call call;
        struct http_request *request;
        struct arena arena;
        struct describe about;
        const char *format;
        const char **files;
};

static void telling_free(struct telling *one)
{
        guest_call_close(&one->call);
        json_decref((json_t *)(uintptr_t)one->about.tools);
        arena_done(&one->arena);
        free(one);
}

static void on_gone(struct http_request *request)
{
        telling_free(request->owner);
}

static void answer(struct telling *one)
{
        struct http_request *request = one->request;
        const struct service *service = service_of(request);
        struct csn_error err;
        struct buf text, out;
        buf_init(&text, 1 * MIB);
        buf_init(&out, 4 * MIB);
        request->gone = NULL;
        one->about.files = one->files;
        int rc = front_describe(service->settings, engine_languages(service->engine), &one->about, &text, &err);
        rc = rc < 0 ? rc : front_describe_as(service->settings, &one->about, one->format, text.bytes, &out, &err);
        if (rc < 0)
                http_fail(request, &err);
        else
                http_answer(request, MHD_HTTP_OK,
                        strcmp(one->format, "text") == 0 ? "text/plain; charset=utf-8" : "application/json",
                        mem_copy(out.bytes, out.len), out.len);
        buf_done(&text);
        buf_done(&out);
        telling_free(one);
}

/* ---- files of a session ---- */

static void add_file(struct telling *one, const char *name)
{
        if (one->about.files_n < FILES_TOLD)
                one->files[one->about.files_n++] = arena_text(&one->arena, "%s", name);
}

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        static const char home[] = "/home/user/";
        struct telling *one = call->owner;
        struct guest_entry entry;
        struct csn_error err;
        (void)fds;
        if (kind != GUEST_ENTRY || guest_get_entry(bytes, len, &one->arena, &entry, &err) < 0)
                return;
        const char *name = strncmp(entry.path, home, strlen(home)) == 0 ? entry.path + strlen(home) : entry.path;
        if (name[0] && name[0] != '.')
                add_file(one, name);
}

static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        struct telling *one = call->owner;
        struct http_request *request = one->request;
        if (!error) {
                answer(one);
                return;
        }
        request->gone = NULL;
        api_file_error(request, error);
        telling_free(one);
}

static const struct guest_call_events events = { .packet = on_packet, .ended = on_ended };

/* ---- the request ---- */

/* ?files=["a.csv", "b.csv"].  False: an error was answered. */
static bool take_files(struct telling *one)
{
        const char *text = http_query(one->request, "files");
        json_t *list = text ? model_read(text, strlen(text), 0, NULL) : NULL, *name;
        bool good = !text || json_is_array(list);
        struct csn_error err;
        size_t at;
        json_array_foreach(list, at, name) {
                good = good && json_is_string(name) && at < FILES_TOLD;
                if (good)
                        add_file(one, json_string_value(name));
        }
        json_decref(list);
        if (good)
                return true;
        err_field(&err, "files", "files has to be a JSON list of at most %d texts, such as [\"a.csv\"]", FILES_TOLD);
        http_fail(one->request, &err);
        return false;
}

static bool take_mode(struct telling *one, const char *text)
{
        struct csn_error err;
        for (size_t i = 0; i < choices_session_mode.n; i++)
                if (strcmp(choices_session_mode.values[i].text, text) == 0) {
                        one->about.session = (enum session_mode)i;
                        return true;
                }
        err_field(&err, "mode", "mode is \"%.40s\"; it has to be none, files or interpreter", text);
        http_fail(one->request, &err);
        return false;
}

/* False: the profile is unknown, and an error was answered. */
static bool take_profile(struct telling *one)
{
        const struct settings *settings = service_of(one->request)->settings;
        const char *name = http_query(one->request, "profile");
        struct profile profile;
        struct csn_error err;
        one->about.profile = name ? name : settings->engine.profile;
        if (profile_find(settings, one->about.profile, &one->arena, &profile, &err) < 0) {
                http_fail(one->request, &err);
                return false;
        }
        one->about.session = profile.session;
        one->about.tools = service_tools(one->request, one->about.profile, true);
        return true;
}

/* The files of a session need the scope for sandboxes.  NULL: an error was answered. */
static struct psandbox *find_session(struct telling *one, const char *id)
{
        const struct store_key *key = service_key(one->request);
        struct csn_error err;
        int mode;
        if (key && !(key->scopes & (SCOPE_SANDBOXES | SCOPE_ADMIN))) {
                err_set(&err, CSN_E_DENIED, 0, "the files of a session need a key with the scope sandboxes");
                http_fail(one->request, &err);
                return NULL;
        }
        struct psandbox *psandbox = api_session_psandbox(one->request, id, &mode);
        if (psandbox)
                one->about.session = (enum session_mode)mode;
        return psandbox;
}

static void tell(struct http_request *request, const char *format)
{
        const char *session = http_query(request, "session"), *mode = http_query(request, "mode");
        static char home[] = "/home/user";
        struct guest_file list = { .verb = GUEST_LIST, .depth = 1, .path = home };
        struct csn_error err;
        struct telling *one = mem_alloc(sizeof *one);
        *one = (struct telling){ .request = request, .format = format };
        one->call.events = &events;
        one->call.owner = one;
        one->files = arena_alloc(&one->arena, FILES_TOLD * sizeof *one->files);
        struct psandbox *psandbox = NULL;
        bool good = take_profile(one) && take_files(one) && (!session || (psandbox = find_session(one, session))) &&
                (!mode || take_mode(one, mode));
        if (!good) {
                telling_free(one);
        } else if (!psandbox) {
                answer(one);
        } else if (guest_call_file(psandbox, &one->call, &list, &err) < 0) {
                http_fail(request, &err);
                telling_free(one);
        } else {
                request->owner = one;
                request->gone = on_gone;
        }
}

void api_describe(struct http_request *request)
{
        tell(request, "text");
}

void api_tool_schema(struct http_request *request)
{
        const char *format = http_query(request, "format");
        tell(request, format ? format : "openai");
}
