/*
 * The interface of SandboxFusion (bytedance/SandboxFusion, used by trainers for rewards): POST /run_code.  Routes of
 * data sets report the lack of data sets.
 *
 * SandboxFusion checks requests with pydantic, and errors have FastAPI's form, {"detail": ...}.  A failed program
 * gets an answer with "Failed"; a failure of the host gets an answer with "SandboxError".
 */
#include "front/compat/sandboxfusion.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIMEOUT_S 10                       /* run_timeout where none is given */
#define FETCH_MAX 1000                     /* names in fetch_files */
#define FETCH_BYTES_MAX (64 * MIB)         /* all fetched files of a run */

/* Names of languages in SandboxFusion; a language missing on this host is no error of the client. */
static const char *const languages[] = {
        "python",
        "cpp",
        "nodejs",
        "go",
        "go_test",
        "java",
        "php",
        "csharp",
        "bash",
        "typescript",
        "sql",
        "rust",
        "cuda",
        "lua",
        "R",
        "perl",
        "D_ut",
        "ruby",
        "scala",
        "julia",
        "pytest",
        "junit",
        "kotlin_script",
        "jest",
        "verilog",
        "python_gpu",
        "lean",
        "swift",
        "racket",
};

/* A converted body; of a run the struct is in the run's arena. */
struct fusion {
        struct compat_given given;
        struct run *run;
        char **names;                      /* to fetch */
        size_t names_n;
        struct bytes *kept;                /* room for FETCH_MAX */
        size_t kept_n, bytes;
        char *text;                        /* of the answer */
};

/* ---- check of a request ---- */

enum kind { A_TEXT, A_TEXT_OR_NULL, A_NUMBER, AN_INTEGER, TEXTS, TEXTS_BY_NAME };

static const struct { const char *name; enum kind kind; bool required;
} fields[] = {
        { "compile_timeout", A_NUMBER, false },
        { "run_timeout", A_NUMBER, false },
        { "memory_limit_MB", AN_INTEGER, false },
        { "code", A_TEXT, true },
        { "stdin", A_TEXT_OR_NULL, false },
        { "language", A_TEXT, true },
        { "files", TEXTS_BY_NAME, false },
        { "fetch_files", TEXTS, false },
        { "args", TEXTS, false },
};

static bool is_whole(const json_t *json)
{
        double number;
        return compat_number(json, &number) && trunc(number) == number;
}

static void check_texts(json_t *flaws, const char *field, json_t *list)
{
        json_t *one;
        size_t i;
        json_array_foreach(list, i, one) {
                if (!json_is_string(one))
                        fusion_add_flaw(flaws, "string_type", "Input should be a valid string", field,
                                json_integer((json_int_t)i), one);
        }
        if (json_array_size(list) > FETCH_MAX)
                fusion_add_flaw(flaws, "too_long", "List should have at most 1000 items", field, NULL, json_null());
}

static void check_named(json_t *flaws, const char *field, json_t *object)
{
        const char *name;
        json_t *one;
        json_object_foreach(object, name, one) {
                if (!json_is_string(one) && !json_is_null(one))
                        fusion_add_flaw(flaws, "string_type", "Input should be a valid string", field,
                                json_string(name), one);
        }
}

static void check_field(json_t *flaws, const char *field, enum kind kind, json_t *json)
{
        double number;
        if ((kind == A_TEXT || kind == A_TEXT_OR_NULL) && !json_is_string(json) &&
                !(kind == A_TEXT_OR_NULL && json_is_null(json)))
                fusion_add_flaw(flaws, "string_type", "Input should be a valid string", field, NULL, json);
        else if (kind == A_NUMBER && !compat_number(json, &number))
                fusion_add_flaw(flaws, "float_type", "Input should be a valid number", field, NULL, json);
        else if (kind == AN_INTEGER && !is_whole(json))
                fusion_add_flaw(flaws, "int_type", "Input should be a valid integer", field, NULL, json);
        else if (kind == TEXTS && !json_is_array(json))
                fusion_add_flaw(flaws, "list_type", "Input should be a valid list", field, NULL, json);
        else if (kind == TEXTS_BY_NAME && !json_is_object(json))
                fusion_add_flaw(flaws, "dict_type", "Input should be a valid dictionary", field, NULL, json);
        else if (kind == TEXTS)
                check_texts(flaws, field, json);
        else if (kind == TEXTS_BY_NAME)
                check_named(flaws, field, json);
}

static json_t *flaws_of(json_t *body)
{
        json_t *flaws = json_array();
        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
                json_t *json = json_object_get(body, fields[i].name);
                if (json)
                        check_field(flaws, fields[i].name, fields[i].kind, json);
                else if (fields[i].required)
                        fusion_add_flaw(flaws, "missing", "Field required", fields[i].name, NULL, json_null());
        }
        return flaws;
}

/* ---- the request ---- */

static json_t *limits_of(json_t *body)
{
        double seconds = TIMEOUT_S, memory = -1;
        compat_number(json_object_get(body, "run_timeout"), &seconds);
        compat_number(json_object_get(body, "memory_limit_MB"), &memory);
        json_t *limits = json_pack("{s:o}", "wall_ms", compat_scaled(seconds, 1000, 1, FUSION_WALL_MS_MAX));
        if (memory > 0)
                json_object_set_new(limits, "memory_bytes", compat_scaled(memory, MIB, 4 * MIB, 1024 * GIB));
        return limits;
}

/* "./a" is a. */
static const char *plain(const char *name)
{
        return strncmp(name, "./", 2) == 0 ? name + 2 : name;
}

static json_t *inputs_of(json_t *body)
{
        json_t *list = json_array(), *content;
        const char *name;
        json_object_foreach(json_object_get(body, "files"), name, content) {
                if (json_is_string(content) && !strstr(name, "IGNORE_THIS_FILE"))
                        json_array_append_new(list,
                                json_pack("{s:s, s:o}", "name", plain(name), "content_base64", compat_base64(content)));
        }
        return list;
}

/* A name as a glob(7) pattern for this name only. */
static json_t *exactly(const char *name)
{
        struct buf text;
        buf_init(&text, KIB * 3);
        for (; *name; name++)
                buf_printf(&text, "%s%c", strchr("*?[\\", *name) ? "\\" : "", *name);
        json_t *json = json_string(text.bytes ? text.bytes : "");
        buf_done(&text);
        return json;
}

static json_t *exports_of(json_t *body)
{
        json_t *list = json_array(), *name;
        size_t i;
        json_array_foreach(json_object_get(body, "fetch_files"), i, name) {
                json_array_append_new(list, json_pack("{s:o}", "pattern", exactly(plain(json_string_value(name)))));
        }
        return list;
}

static json_t *ours_of(json_t *body)
{
        json_t *stdin_text = json_object_get(body, "stdin");
        json_t *ours = json_pack("{s:O, s:O, s:o, s:o, s:o}", "language", json_object_get(body, "language"), "code",
                json_object_get(body, "code"), "limits", limits_of(body), "files", inputs_of(body), "exports",
                exports_of(body));
        if (json_is_string(stdin_text))
                json_object_set(ours, "stdin", stdin_text);
        return ours;
}

/* ---- fetched files ---- */

static int on_keep(void *owner, const char *run_id, const char *user, const char *name, const char *mime, int fd,
        struct arena *arena, char **ret_url, struct csn_error *err)
{
        struct fusion *fusion = owner;
        struct stat st;
        (void)run_id, (void)user, (void)mime;
        if (fstat(fd, &st) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "read %s", name);
        if (fusion->kept_n == FETCH_MAX || (uint64_t)st.st_size > FETCH_BYTES_MAX - fusion->bytes)
                return err_set(err, CSN_E_INPUT, 0, "more than %llu MiB are fetched", FETCH_BYTES_MAX / MIB);
        struct bytes *kept = &fusion->kept[fusion->kept_n];
        kept->bytes = arena_alloc(arena, (size_t)st.st_size + 1);
        for (ssize_t n = 1; n > 0 && kept->len < (size_t)st.st_size; kept->len += n > 0 ? (size_t)n : 0)
                n = read(fd, kept->bytes + kept->len, (size_t)st.st_size - kept->len);
        if (kept->len < (size_t)st.st_size)
                return err_set(err, CSN_E_SYSTEM, errno, "read %s", name);
        fusion->bytes += kept->len;
        *ret_url = arena_text(arena, "%zu", fusion->kept_n++);
        return 0;
}

static const struct run_storage storage = { .keep = on_keep };

static const struct bytes *input_of(const struct fusion *fusion, const char *name)
{
        const struct run_request *given = run_request(fusion->run);
        for (size_t i = 0; i < given->files_n; i++)
                if (strcmp(given->files[i].name, name) == 0)
                        return &given->files[i].content;
        return NULL;
}

/* The content of a file after the run; NULL: nothing to fetch. */
static const struct bytes *content_of(const struct fusion *fusion, const struct run_result *result, const char *name)
{
        for (size_t i = 0; i < result->files_n; i++) {
                const struct output_file *file = &result->files[i];
                if (strcmp(file->name, name) != 0)
                        continue;
                if (HAS(file, output_file, url))
                        return &fusion->kept[strtoul(file->url, NULL, 10)];
                return file->error && strcmp(file->error, RUN_FILE_UNCHANGED) == 0 ? input_of(fusion, name) : NULL;
        }
        return NULL;
}

static json_t *fetched(const struct fusion *fusion, const struct run_result *result)
{
        struct arena arena = { 0 };
        json_t *files = json_object();
        for (size_t i = 0; i < fusion->names_n; i++) {
                const struct bytes *content = content_of(fusion, result, plain(fusion->names[i]));
                if (content)
                        json_object_set_new(files, fusion->names[i],
                                json_string(model_base64(&arena, content->bytes ? content->bytes : "", content->len)));
        }
        arena_done(&arena);
        return files;
}

static void on_encode(void *own, const struct run_result *result)
{
        struct fusion *fusion = own;
        fusion->text = http_json_text(fusion_answer(result, fetched(fusion, result)));
}

static void on_answer(struct http_request *request, void *own, const struct run_result *result)
{
        struct fusion *fusion = own;
        (void)result;
        http_answer_json(request, MHD_HTTP_OK, fusion->text);
        fusion->text = NULL;
}

static void on_drop(void *own)
{
        struct fusion *fusion = own;
        free(fusion->text);
}

static const struct run_responder words = { .encode = on_encode, .answer = on_answer, .drop = on_drop };

/* ---- POST /run_code ---- */

/*
 * A language of SandboxFusion missing on this host is answered as a failure of the runner.  False: the request has its
 * answer.
 */
static bool has_language(struct compat_given *given, const struct language *added, json_t *body)
{
        json_t *name = json_object_get(body, "language");
        const struct language *language;
        struct csn_error err;
        if (lang_find(added, json_string_value(name), &language, &err) == 0)
                return true;
        for (size_t i = 0; i < ARRAY_LEN(languages); i++)
                if (strcmp(languages[i], json_string_value(name)) == 0) {
                        compat_refuse(given, MHD_HTTP_OK, fusion_no_run(&err));
                        return false;
                }
        json_t *flaws = json_array();
        fusion_add_flaw(flaws, "literal_error", err.text, "language", NULL, name);
        compat_refuse(given, MHD_HTTP_UNPROCESSABLE_CONTENT, fusion_flaws(flaws));
        return false;
}

static void convert_valid(json_t *body, struct fusion *fusion, struct arena *arena)
{
        struct csn_error err;
        json_t *names = json_object_get(body, "fetch_files"), *name;
        size_t i;
        if (compat_decode(ours_of(body), arena, &fusion->given.request, &err) < 0) {
                compat_refuse(&fusion->given, MHD_HTTP_OK, fusion_no_run(&err));
                return;
        }
        fusion->names_n = json_array_size(names);
        fusion->names = arena_alloc(arena, fusion->names_n * sizeof *fusion->names + 1);
        if (fusion->names_n)
                fusion->kept = arena_alloc(arena, FETCH_MAX * sizeof *fusion->kept);
        json_array_foreach(names, i, name) {
                fusion->names[i] = arena_text(arena, "%s", json_string_value(name));
        }
}

static void *convert_run_code(json_t *body, const struct csn_error *error, void *context, struct arena *arena)
{
        struct fusion *fusion = arena_alloc(arena, sizeof *fusion);
        json_t *flaws = body ? flaws_of(body) : fusion_no_json(error);
        if (json_array_size(flaws))
                compat_refuse(&fusion->given, MHD_HTTP_UNPROCESSABLE_CONTENT, fusion_flaws(json_incref(flaws)));
        else if (has_language(&fusion->given, context, body))
                convert_valid(body, fusion, arena);
        json_decref(flaws);
        return fusion;
}

static void *begin(struct http_request *request, struct arena *arena)
{
        (void)arena;
        return (void *)(uintptr_t)engine_languages(service_of(request)->engine);
}

static void fusion_run_code(struct http_request *request)
{
        struct fusion *fusion = parse_of(request)->given;
        if (compat_answer(request, &fusion->given))
                return;
        struct run *run = compat_run(request, &fusion->given.request);
        if (!compat_may_run(request, run))
                return;
        parse_move(parse_of(request), run_arena(run));
        fusion->run = run;
        run_set_storage(run, &storage, fusion);
        service_start_run(request, run, &words, fusion, false);
}

/* ---- data sets ---- */

static void fusion_list_datasets(struct http_request *request)
{
        http_json(request, MHD_HTTP_OK, json_array());
}

static void fusion_dataset(struct http_request *request)
{
        struct csn_error err;
        json_t *body = json_body(request, &err);
        const char *name = json_string_value(json_object_get(body, "dataset"));
        if (name) {
                http_json(request, MHD_HTTP_BAD_REQUEST,
                        fusion_detail(
                                "no eval class found for dataset %s: this server runs programs (POST /run_code); it has no "
                                "data sets, and so no prompts and no metrics",
                                name));
        } else {
                json_t *flaws = body ? json_array() : fusion_no_json(&err);
                if (body)
                        fusion_add_flaw(flaws, "missing", "Field required", "dataset", NULL, json_null());
                http_json(request, MHD_HTTP_UNPROCESSABLE_CONTENT, fusion_flaws(flaws));
        }
        json_decref(body);
}

static void fusion_ping(struct http_request *request)
{
        static const char pong[] = "\"pong\"";
        http_answer(request, MHD_HTTP_OK, "application/json", mem_copy(pong, sizeof pong - 1), sizeof pong - 1);
}

/* ---- the front ---- */

#define CODE_EXAMPLE "{\"language\": \"python\", \"code\": \"print(6 * 7)\"}"

static const struct http_route routes[] = {
        { "POST", "/run_code", NULL, SCOPE_RUN, BODY_TREE | BODY_MIB(16), fusion_run_code,
          "As SandboxFusion: run a program and fetch its files. docs/use/compat.md has what of it works.",
          NULL, NULL },
        { "GET", "/list_datasets", NULL, SCOPE_READ, BODY_NONE, fusion_list_datasets,
          "As SandboxFusion: its data sets, of which there are none here.", NULL, NULL },
        { "POST", "/list_ids", NULL, SCOPE_RUN, BODY_TREE, fusion_dataset,
          "As SandboxFusion where it does not know the data set: 400.", NULL, NULL },
        { "POST", "/get_prompts", NULL, SCOPE_RUN, BODY_TREE, fusion_dataset,
          "As SandboxFusion where it does not know the data set: 400.", NULL, NULL },
        { "POST", "/get_prompt_by_id", NULL, SCOPE_RUN, BODY_TREE, fusion_dataset,
          "As SandboxFusion where it does not know the data set: 400.", NULL, NULL },
        { "POST", "/submit", NULL, SCOPE_RUN, BODY_TREE | BODY_MIB(16), fusion_submit,
          "As SandboxFusion: run the program in a model's answer with the tests that come with it.",
          NULL, NULL },
        { "POST", "/get_metrics", NULL, SCOPE_RUN, BODY_TREE, fusion_dataset,
          "As SandboxFusion where it does not know the data set: 400.", NULL, NULL },
        { "POST", "/get_metrics_function", NULL, SCOPE_RUN, BODY_TREE, fusion_dataset,
          "As SandboxFusion where it does not know the data set: 400.", NULL, NULL },
        { "GET", "/v1/ping", NULL, 0, BODY_NONE, fusion_ping, "As SandboxFusion: whether it answers.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct front_note notes[] = {
        { fusion_run_code, "200:json", "422:json 429 503", "json", NULL, NULL, CODE_EXAMPLE },
        { fusion_list_datasets, "200:json", NULL, NULL, NULL, NULL, NULL },
        { fusion_dataset, NULL, "400:json 422:json", "json", NULL, NULL, "{\"dataset\": \"humaneval_python\"}" },
        { fusion_submit, "200:json", "400:json 422:json 429 503", "json", NULL, NULL,
                "{\"dataset\": \"mine\", \"id\": 1, \"completion\": \"```python\\nprint(6 * 7)\\n```\", \"config\": {\"dataset_type\": \"CommonOJDataset\", \"language\": "
                "\"python\", \"provided_data\": {\"test\": [{\"input\": {\"stdin\": \"\"}, \"output\": {\"stdout\": \"42\"}}]}}}" },
        { fusion_ping, "200:json", NULL, NULL, NULL, NULL, NULL },
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};

static const struct front_tag tags[] = {
        { "/run_code", "SandboxFusion", "Requests in the words of SandboxFusion." },
        { "/list_", "SandboxFusion", NULL },
        { "/get_", "SandboxFusion", NULL },
        { "/submit", "SandboxFusion", NULL },
        { "/v1/ping", "SandboxFusion", NULL },
        { NULL, NULL, NULL },
};

static const struct parse_converter converters[] = {
        { .handle = fusion_run_code, .begin = begin, .convert = convert_run_code, .drop = compat_drop },
        { .handle = fusion_submit, .begin = begin, .convert = fusion_convert_submit, .drop = fusion_drop_submit },
        { .handle = NULL },
};

const struct front sandboxfusion_front = {
        .name = "sandboxfusion", .routes = routes, .notes = notes, .converters = converters, .tags = tags
};
