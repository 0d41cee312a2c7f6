/* Routes of the front. */
#include "front/librechat/librechat.h"

static void librechat_health(struct http_request *request)
{
        http_json(request, MHD_HTTP_OK, json_pack("{s:s, s:s}", "status", "healthy", "service", "caisson"));
}

#define ROOT "/librechat/v1"

static const struct http_route routes[] = {
        { "POST", ROOT "/exec", "*", SCOPE_RUN, BODY_TREE | BODY_MIB(16), librechat_exec,
          "As the code interpreter of LibreChat: run a program with files of sessions.", NULL, NULL },
        { "POST", ROOT "/exec/programmatic", "*", SCOPE_RUN, BODY_TREE | BODY_MIB(16), librechat_programmatic,
          "As the code interpreter of LibreChat: run a program that calls tools of the client. The answer has calls and a token; a request with the token and the results runs the program again.",
          NULL, NULL },
        { "POST", ROOT "/upload", "*", SCOPE_FILES, BODY_STREAM, librechat_upload,
          "As the code interpreter of LibreChat: make a session of files.", NULL, NULL },
        { "POST", ROOT "/upload/batch", "*", SCOPE_FILES, BODY_STREAM, librechat_upload_batch,
          "As the code interpreter of LibreChat: the same, with a status for each file.", NULL, NULL },
        { "GET", ROOT "/download/{session_id}/{file_id}", "*", SCOPE_FILES, BODY_NONE, librechat_download,
          "As the code interpreter of LibreChat: a file's content.", NULL, NULL },
        { "GET", ROOT "/files/{session_id}", "*", SCOPE_FILES, BODY_NONE, librechat_list,
          "As the code interpreter of LibreChat: the files of a session.", NULL, NULL },
        { "DELETE", ROOT "/files/{session_id}/{file_id}", "*", SCOPE_FILES, BODY_NONE, librechat_delete,
          "As the code interpreter of LibreChat: remove a file.", NULL, NULL },
        { "GET", ROOT "/sessions/{session_id}/objects/{file_id}", "*", SCOPE_FILES, BODY_NONE, librechat_object,
          "As the code interpreter of LibreChat: when a file was made.", NULL, NULL },
        { "GET", ROOT "/health", "*", 0, BODY_NONE, librechat_health,
          "As the code interpreter of LibreChat: whether the daemon answers.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct http_app librechat_app = {
        .routes = routes, .admit = service_admit_own, .problem = librechat_problem
};

static const struct http_app *app_of(struct service *service, struct http_request *request)
{
        (void)service;
        return strncmp(request->path, ROOT "/", strlen(ROOT "/")) == 0 ? &librechat_app : NULL;
}

#define PROBLEMS "400:json 401:json 403:json 404:json 413:json 429:json 500:json 503:json 507:json"
#define BODY_PROBLEMS PROBLEMS " 415:json"
#define PATH_EXAMPLE "session_id=AAAAAAAAAAAAAAAAAAAAA file_id=AAAAAAAAAAAAAAAAAAAAA"

static const struct front_note notes[] = {
        { librechat_exec, "200:json", BODY_PROBLEMS, "json", NULL, NULL, "{\"lang\": \"py\", \"code\": \"print(6 * 7)\"}" },
        { librechat_programmatic, "200:json", BODY_PROBLEMS, "json", NULL, NULL,
          "{\"code\": \"print(await add(a=1, b=2))\", \"tools\": [{\"name\": \"add\", \"parameters\": {\"type\": \"object\"}}]}" },
        { librechat_upload, "200:json", BODY_PROBLEMS, "form", NULL, NULL, NULL },
        { librechat_upload_batch, "200:json", BODY_PROBLEMS, "form", NULL, NULL, NULL },
        { librechat_download, "200:bytes", PROBLEMS, NULL, PATH_EXAMPLE, "Content-Disposition", NULL },
        { librechat_list, "200:json", PROBLEMS, NULL, PATH_EXAMPLE, NULL, NULL },
        { librechat_delete, "200:json", PROBLEMS, NULL, PATH_EXAMPLE, NULL, NULL },
        { librechat_object, "200:json", PROBLEMS, NULL, PATH_EXAMPLE, NULL, NULL },
        { librechat_health, "200:json", NULL, NULL, NULL, NULL, NULL },
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};

#define ID_SCHEMA "{\"type\": \"string\", \"pattern\": \"^[A-Za-z0-9_-]{21}$\"}"

static const struct front_value parameters[] = {
        { "{session_id}", ID_SCHEMA, "AAAAAAAAAAAAAAAAAAAAA", true, "A session: a run, or an upload." },
        { "{file_id}", ID_SCHEMA, "AAAAAAAAAAAAAAAAAAAAA", true, "A file of the session." },
        { NULL, NULL, NULL, false, NULL },
};

static const struct front_tag tags[] = {
        { ROOT "/", "LibreChat", "The code interpreter that LibreChat calls." },
        { NULL, NULL, NULL },
};

const struct front librechat_front = { .name = "librechat",
        .routes = routes,
        .notes = notes,
        .parameters = parameters,
        .tags = tags,
        .state_size = sizeof(struct librechat_state),
        .app = app_of,
        .stop = librechat_programmatic_close };
