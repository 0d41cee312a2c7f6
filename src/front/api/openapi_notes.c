/* What the operations of /v1 take and answer beside what their routes say; see front/service/front.h. */
#include "front/api/api.h"
#include "front/api/openapi.h"

#define EVENTS "events|ndjson"
#define STARTED "Location Preference-Applied"
#define FILE_HEADERS "Accept-Ranges Content-Range Content-Disposition Last-Modified"
#define CODE_EXAMPLE "{\"language\": \"python\", \"code\": \"print(6 * 7)\"}"
#define IN_CONTEXT_EXAMPLE "{\"code\": \"print(6 * 7)\"}"

const struct front_note api_notes[] = {
        { api_post_run, "200:run_result|" EVENTS " 202:kept_run", "409 429 503 507", NULL, "Idempotency-Key Prefer", STARTED " Idempotency-Replayed", CODE_EXAMPLE },
        { api_bulk, "200:ndjson", "503", "ndjson", NULL, NULL, "{\"id\": 1, \"language\": \"python\", \"code\": \"print(6 * 7)\"}" },
        { api_get_run, "200:run_result 202:kept_run", NULL, NULL, NULL, NULL, NULL },
        { api_delete_run, "202:kept_run 204", NULL, NULL, NULL, NULL, NULL },
        { api_get_events, "200:" EVENTS, NULL, NULL, "Last-Event-ID", NULL, NULL },
        { api_post_tool_results, "200:tools_taken", "409", NULL, NULL, NULL, "{\"results\": [{\"call\": \"call_1\", \"result\": 42}]}" },
        { api_post_sandbox, "201:sandbox_info", "429 499 503", NULL, NULL, "Location", "{\"ttl_ms\": 600000}" },
        { api_patch_sandbox, "200:sandbox_info", "409", NULL, NULL, NULL, "{\"ttl_ms\": 900000}" },
        { api_delete_sandbox, "204", "409", NULL, NULL, NULL, NULL },
        { api_pause_sandbox, "200:sandbox_info", "409", "none", NULL, NULL, NULL },
        { api_resume_sandbox, "200:sandbox_info", "409", "none", NULL, NULL, NULL },
        { api_sandbox_metrics, "200:sandbox_usage", "409", NULL, NULL, NULL, NULL },
        { api_post_context, "201:context_info", "409 429 499 503", NULL, NULL, "Location", "{\"language\": \"python\"}" },
        { api_post_context_run, "200:run_result|" EVENTS " 202:kept_run", "409 429 503 507", NULL, "Idempotency-Key Prefer", STARTED " Idempotency-Replayed",
          IN_CONTEXT_EXAMPLE },
        { api_interrupt_context, "200:context_info", "409", "none", NULL, NULL, NULL },
        { api_restart_context, "200:context_info", "409 499 503", "none", NULL, "Location", NULL },
        { api_delete_context, "204", NULL, NULL, NULL, NULL, NULL },
        { api_post_session, "201:session_info", "409 429 499 503", NULL, NULL, "Location", "{\"language\": \"python\", \"mode\": \"interpreter\"}" },
        { api_post_session_run, "200:run_result|" EVENTS " 202:kept_run", "409 429 503 507", NULL, "Idempotency-Key Prefer", STARTED " Idempotency-Replayed",
          IN_CONTEXT_EXAMPLE },
        { api_delete_session, "204", NULL, NULL, NULL, NULL, NULL },
        { api_post_process, "200:process_info|" EVENTS " 202:process_info", "409 429 503", NULL, "Prefer", STARTED, "{\"command\": \"echo hello\"}" },
        { api_delete_process, "204", NULL, NULL, NULL, NULL, NULL },
        { api_process_events, "200:" EVENTS, NULL, NULL, "Last-Event-ID", NULL, NULL },
        { api_process_stdin, "204", "409", "bytes", NULL, NULL, "hello\n" },
        { api_process_signal, "204", "409", NULL, NULL, NULL, "{\"signal\": \"TERM\"}" },
        { api_process_size, "204", "409", NULL, NULL, NULL, "{\"columns\": 100, \"rows\": 30}" },
        { api_get_file, "200:bytes|tar 206:bytes", "403 409 416", NULL, "Range", FILE_HEADERS, NULL },
        { api_put_file, "201:entry_info 204", "403 409 507", "bytes|tar", NULL, NULL, "hello\n" },
        { api_post_files, "201:upload_result", "403 409 507", "form", "path=.", NULL, NULL },
        { api_change_file, "200:entry_info", "403 409 507", NULL, NULL, NULL, "{\"action\": \"mode\", \"mode\": \"0600\"}" },
        { api_delete_file, "204", "403 409", NULL, NULL, NULL, NULL },
        { api_list_files, "200:entry_list", "403 409", NULL, "path=.", NULL, NULL },
        { api_stat_file, "200:entry_info", "403 409", NULL, NULL, NULL, NULL },
        { api_watch_files, "200:" EVENTS, "403 409", NULL, "path=.", NULL, NULL },
        { api_post_stored, "201:stored_file|stored_list", "413 507", "bytes|form", NULL, "Location", "hello\n" },
        { api_get_stored, "200:bytes 206:bytes", "416", NULL, "Range", FILE_HEADERS, NULL },
        { api_delete_stored, "204", NULL, NULL, NULL, NULL, NULL },
        { api_delete_workspace, "204", "429", NULL, NULL, NULL, NULL },
        { api_workspace_get, "200:bytes 206:bytes", "416", NULL, "Range", FILE_HEADERS, NULL },
        { api_workspace_put, "201:workspace_file", "413 429 507", "bytes", NULL, NULL, "hello\n" },
        { api_workspace_delete, "204", "429 507", NULL, NULL, NULL, NULL },
        { api_check, "200:check_result", "429 503", NULL, NULL, NULL, CODE_EXAMPLE },
        { api_grade, "200:grade_result|ndjson", "413 429 503", "grade_request|ndjson", NULL, NULL,
          "{\"language\": \"python\", \"code\": \"def add(a, b):\\n    return a + b\", \"function\": \"add\", \"cases\": [{\"args\": [1, 2], \"expected\": 3}]}" },
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};

const struct openapi_content openapi_contents[] = {
        { "json", "application/json", "{}" },
        { "events", "text/event-stream", "{\"type\": \"string\", \"description\": \"Events: docs/use/http.md has them.\"}" },
        { "ndjson", "application/x-ndjson", "{\"type\": \"string\", \"description\": \"Lines of JSON.\"}" },
        { "bytes", "application/octet-stream", "{\"type\": \"string\", \"format\": \"binary\", \"description\": \"The content of a file.\"}" },
        { "tar", "application/x-tar", "{\"type\": \"string\", \"format\": \"binary\", \"description\": \"A folder, as tar packs it.\"}" },
        { "form", "multipart/form-data", "{\"type\": \"object\", \"description\": \"Files, each with a filename.\"}" },
        { "text", "text/plain", "{\"type\": \"string\"}" },
        { "page", "text/html", "{\"type\": \"string\"}" },
        { NULL, NULL, NULL },
};

#define TEXT_SCHEMA "{\"type\": \"string\"}"
#define COUNT_SCHEMA "{\"type\": \"integer\", \"minimum\": 0}"

const struct front_value api_headers[] = {
        { "X-Request-Id", TEXT_SCHEMA, NULL, true, "The id of the request: the one of its header `X-Request-Id`, or a new one." },
        { "traceparent", TEXT_SCHEMA, NULL, true, "The span of the request, below that of its own `traceparent` (W3C Trace Context)." },
        { "X-Content-Type-Options", TEXT_SCHEMA, NULL, true, "`nosniff`." },
        { "Cache-Control", TEXT_SCHEMA, NULL, true, "`no-store`." },
        { "Location", TEXT_SCHEMA, NULL, false, "The path of what was made." },
        { "Idempotency-Replayed", TEXT_SCHEMA, NULL, false, "`true`: the answer is that of an earlier request with this `Idempotency-Key`." },
        { "Preference-Applied", TEXT_SCHEMA, NULL, false, "`respond-async`." },
        { "Accept-Ranges", TEXT_SCHEMA, NULL, false, "`bytes`." },
        { "Content-Range", TEXT_SCHEMA, NULL, false, "Which bytes of how many the answer is." },
        { "Content-Disposition", TEXT_SCHEMA, NULL, false, "`attachment`, with the name of the file." },
        { "Last-Modified", TEXT_SCHEMA, NULL, false, "When the file was changed." },
        { "Content-Security-Policy", TEXT_SCHEMA, NULL, false, "The page may load nothing." },
        { "WWW-Authenticate", TEXT_SCHEMA, NULL, false, "`Bearer`." },
        { "Accept-Encoding", TEXT_SCHEMA, NULL, false, "`identity`: no coding of a body is read." },
        { "Retry-After", COUNT_SCHEMA, NULL, false, "Seconds until the request may be sent again." },
        { "RateLimit-Limit", COUNT_SCHEMA, NULL, false, "The limit that was met." },
        { "RateLimit-Remaining", COUNT_SCHEMA, NULL, false, "What is left of it." },
        { "RateLimit-Reset", COUNT_SCHEMA, NULL, false, "Seconds until there is more." },
        { NULL, NULL, NULL, false, NULL },
};

/* Parameters of paths have braces, and a header with "!" is one that has to be there. */
const struct front_value api_parameters[] = {
        { "{id}", TEXT_SCHEMA, NULL, true, "The id of what is asked for." },
        { "{name}", TEXT_SCHEMA, NULL, true, "The name of what is asked for." },
        { "{number}", COUNT_SCHEMA, NULL, true, "The number of the program, as `id` of its record." },
        { "path", TEXT_SCHEMA, "notes.txt", true, "The path of the file or folder." },
        { "depth", "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 32}", NULL, false, "How many folders deep." },
        { "format", TEXT_SCHEMA, NULL, false, "`tar`: a folder." },
        { "mode", TEXT_SCHEMA, NULL, false, "Permission bits of the file in octal." },
        { "name", TEXT_SCHEMA, "notes.txt", false, "The name of the file, where the body is its content." },
        { "user", TEXT_SCHEMA, NULL, false, "The user of the caller's for whom it is." },
        { "run", TEXT_SCHEMA, NULL, false, "Only what this run made, or is about." },
        { "before", TEXT_SCHEMA, NULL, false, "The id of a file: the page begins behind it." },
        { "cursor", TEXT_SCHEMA, NULL, false, "`next` of the page before." },
        { "limit", "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000}", NULL, false, "How many at most." },
        { "after", COUNT_SCHEMA, NULL, false, "The number of the last event that the client has." },
        { "follow", TEXT_SCHEMA, NULL, false, "`false`: only the events that were." },
        { "end", TEXT_SCHEMA, NULL, false, "`true`: standard input ends behind the body." },
        { "n", "{\"type\": \"integer\", \"minimum\": 1}", NULL, false, "How many lines." },
        { "level", TEXT_SCHEMA, NULL, false, "Lines of this level and worse: error, warning, info or debug." },
        { "request", TEXT_SCHEMA, NULL, false, "Lines about this request." },
        { "trace", TEXT_SCHEMA, NULL, false, "Lines about this trace." },
        { "owner", TEXT_SCHEMA, NULL, false, "Lines about this tenant." },
        { "Idempotency-Key", "{\"type\": \"string\", \"minLength\": 1, \"maxLength\": 255}", NULL, false,
          "A name of the request, by which it is carried out once within a day; sent again, it gets the same answer." },
        { "Prefer", TEXT_SCHEMA, NULL, false, "`respond-async`: the answer comes at once (202), with a link." },
        { "Last-Event-ID", COUNT_SCHEMA, NULL, false, "The number of the last event that the client has." },
        { "Range", TEXT_SCHEMA, NULL, false, "One range of bytes: `bytes=5-9`, `bytes=5-` or `bytes=-5`." },
        { NULL, NULL, NULL, false, NULL },
};

const struct object *const api_objects[] = { &object_kept_run, &object_stored_list, &object_problem, NULL };

const struct front_tag api_tags[] = {
        { "/v1/runs", "Runs", "A program in a sandbox of its own." },
        { "/v1/sandboxes/{id}/contexts", "Contexts", "Live interpreters, whose variables last." },
        { "/v1/contexts", "Contexts", NULL },
        { "/v1/sandboxes/{id}/processes", "Programs", "Programs in a persistent sandbox." },
        { "/v1/sandboxes/{id}/files", "Files of sandboxes", "What is in a persistent sandbox." },
        { "/v1/sandboxes/{id}/entr", "Files of sandboxes", NULL },
        { "/v1/sandboxes/{id}/watch", "Files of sandboxes", NULL },
        { "/v1/sandboxes", "Sandboxes", "Persistent sandboxes." },
        { "/v1/sessions", "Sessions", "A persistent sandbox with one context in it." },
        { "/v1/files", "Files that are kept", "Inputs that are sent ahead, and outputs that stay." },
        { "/v1/workspaces", "Workspaces", "Folders of users that last from run to run." },
        { "/v1/grade", "Checks and grades", "Programs that are judged." },
        { "/v1/check", "Checks and grades", NULL },
        { "/v1/p", "What there is", "Profiles, policies and languages." },
        { "/v1/languages", "What there is", NULL },
        { NULL, NULL, NULL },
};
