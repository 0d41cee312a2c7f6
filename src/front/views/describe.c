/*
 * The description of run_code for a model: only facts of a profile on this host, now.
 *
 * A fixed text is wrong after the next change of a setting, and a model told of a missing library writes a program that
 * fails.  So each sentence comes from the source of its fact: the languages from their interpreters, the limits from
 * the complete request of the profile, the refusals from the policy's rules.
 */
#include "front/views/views.h"

#include <fnmatch.h>
#include <unistd.h>

#define REFUSED_MAX 60                     /* names listed */

/* Modules popular with models; a package of Debian or pip is a folder or a file of the same name. */
static const char *const libraries[] = {
        "numpy",
        "pandas",
        "matplotlib",
        "scipy",
        "sympy",
        "sklearn",
        "seaborn",
        "plotly",
        "statsmodels",
        "PIL",
        "cv2",
        "requests",
        "httpx",
        "bs4",
        "lxml",
        "yaml",
        "jinja2",
        "dateutil",
        "pytz",
        "openpyxl",
        "xlrd",
        "docx",
        "pptx",
        "pypdf",
        "PyPDF2",
        "tabulate",
        "networkx",
        "sqlalchemy",
        "pydantic",
        "jsonschema",
        "pytest",
        "torch",
        "tensorflow",
        "transformers",
};
static const char *const folders[] = { "/usr/lib/python3/dist-packages" };

static void add_item(struct buf *buf, bool *first, const char *text)
{
        buf_printf(buf, "%s%s", *first ? "" : ", ", text);
        *first = false;
}

/* ---- sentences ---- */

static bool runs_here(const struct language *language)
{
        return access(language->interpreter, X_OK) == 0;
}

static void add_languages(struct buf *buf, const struct language *added, const struct profile *profile)
{
        bool first = true;
        buf_printf(buf, "Languages: ");
        for (size_t i = 0; lang_at(i); i++)
                if (runs_here(lang_at(i)))
                        add_item(buf, &first, lang_at(i)->name);
        for (; added; added = added->next)
                if (runs_here(added))
                        add_item(buf, &first, added->name);
        buf_printf(buf, ".%s%s%s\n", HAS(&profile->request, run_request, language) ? " Without `language`: " : "",
                HAS(&profile->request, run_request, language) ? profile->request.language : "",
                HAS(&profile->request, run_request, language) ? "." : "");
}

static bool has_library(const char *name)
{
        static const char *const forms[] = { "%s/%s", "%s/%s.py" };
        char path[300];
        for (size_t i = 0; i < ARRAY_LEN(folders) * ARRAY_LEN(forms); i++) {
                snprintf(path, sizeof path, forms[i % 2], folders[i / 2], name);
                if (access(path, F_OK) == 0)
                        return true;
        }
        return false;
}

/* ---- the policy; NULL: none ---- */

static int severity_of(const json_t *json)
{
        const char *text = json_string_value(json);
        for (size_t i = 0; text && i < choices_threshold.n; i++)
                if (strcmp(choices_threshold.values[i].text, text) == 0)
                        return (int)i;
        return severity_CRITICAL;
}

static bool blocks(json_t *policy, json_t *rule)
{
        return severity_of(json_object_get(rule, "severity")) >= severity_of(json_object_get(policy, "block_at"));
}

static bool is_among(json_t *patterns, const char *name)
{
        size_t i;
        json_t *pattern;
        json_array_foreach(patterns, i, pattern) {
                if (json_is_string(pattern) && fnmatch(json_string_value(pattern), name, 0) == 0)
                        return true;
        }
        return false;
}

/* Whether imports of any name are refused, except names allowed by the policy or the profile. */
static bool is_short_list(json_t *policy)
{
        size_t i;
        json_t *rule;
        json_array_foreach(json_object_get(policy, "rules"), i, rule) {
                if (blocks(policy, rule) &&
                        is_among(json_object_get(json_object_get(rule, "finds"), "import"), "any.name"))
                        return true;
        }
        return false;
}

static bool is_refused(json_t *policy, const struct run_request *whole, const char *module)
{
        size_t i;
        json_t *rule;
        bool allowed = is_among(json_object_get(policy, "allow"), module);
        for (i = 0; i < whole->allow_imports_n && !allowed; i++)
                allowed = strcmp(whole->allow_imports[i], module) == 0;
        json_array_foreach(json_object_get(policy, "rules"), i, rule) {
                if (!allowed && blocks(policy, rule) &&
                        is_among(json_object_get(json_object_get(rule, "finds"), "import"), module))
                        return true;
        }
        return false;
}

/* ---- more sentences ---- */

/* The imported image of Python programs; NULL: the libraries of this host. */
static const char *imported_image(const struct settings *settings, const struct run_request *whole)
{
        const char *name = HAS(whole, run_request, image) ? whole->image : settings->images.python;
        for (size_t i = 0; i < choices_image.n; i++)
                if (strcmp(choices_image.values[i].text, name) == 0)
                        return NULL;
        return name;
}

static void add_libraries(struct buf *buf, const struct settings *settings, json_t *policy,
        const struct run_request *whole)
{
        const char *image = imported_image(settings, whole);
        bool first = true;
        buf_printf(buf, "Python libraries beside the standard library: ");
        for (size_t i = 0; !image && i < ARRAY_LEN(libraries); i++)
                if (has_library(libraries[i]) && !is_refused(policy, whole, libraries[i]))
                        add_item(buf, &first, libraries[i]);
        if (image)
                buf_printf(buf, "those of the image %s", image);
        buf_printf(buf, "%s. %s\n", first && !image ? "none" : "",
                settings->python_packages.index_url[0] ? "Others can be installed: name them in `packages`."
                                                       : "Nothing can be installed.");
}

static void add_limits(struct buf *buf, const struct limits *limits)
{
        char wall[24];
        duration_print(limits->wall_ms, wall, sizeof wall);
        buf_printf(buf,
                "Limits: %s of time, %llu MiB of memory, %llu processes, %llu MiB of files, %llu kB of each output stream.\n",
                wall, (unsigned long long)(limits->memory_bytes / MIB), (unsigned long long)limits->pids,
                (unsigned long long)(limits->disk_bytes / MIB), (unsigned long long)(limits->output_bytes / 1000));
}

static void add_network(struct buf *buf, const struct run_request *whole)
{
        bool first = true;
        if (whole->network == network_ALLOW) {
                buf_printf(buf, "Network: by HTTP and HTTPS, these hosts alone: ");
                for (size_t i = 0; i < whole->allow_n; i++)
                        add_item(buf, &first, whole->allow[i]);
                buf_printf(buf, "%s.\n", first ? "none" : "");
        } else {
                buf_printf(buf, "Network: %s.\n",
                        whole->network == network_PUBLIC ? "by HTTP and HTTPS, public addresses" : "none");
        }
}

/* Each name once; "*" is left out, because add_allowed() lists its exceptions. */
static void add_patterns(struct buf *buf, json_t *patterns, json_t *told, bool *first)
{
        size_t i;
        json_t *pattern;
        json_array_foreach(patterns, i, pattern) {
                const char *text = json_string_value(pattern),
                           *name = text && strncmp(text, "builtins.", 9) == 0 ? text + 9 : text;
                if (!name || strcmp(name, "*") == 0 || json_object_get(told, name))
                        continue;
                if (json_object_size(told) < REFUSED_MAX)
                        add_item(buf, first, name);
                json_object_set_new(told, name, json_true());
        }
}

static void add_refused(struct buf *buf, json_t *policy)
{
        size_t i;
        json_t *rule, *told = json_object();
        bool first = true;
        json_array_foreach(json_object_get(policy, "rules"), i, rule) {
                json_t *finds = json_object_get(rule, "finds");
                if (!blocks(policy, rule))
                        continue;
                add_patterns(buf, json_object_get(finds, "import"), told, &first);
                add_patterns(buf, json_object_get(finds, "reference"), told, &first);
        }
        buf_printf(buf, "%s%s.\n", json_object_size(told) > REFUSED_MAX ? " and others" : "",
                first ? "nothing by name" : "");
        json_decref(told);
}

static void add_allowed(struct buf *buf, json_t *policy, const struct run_request *whole)
{
        size_t i;
        json_t *name;
        bool first = true;
        buf_printf(buf, "Of modules these alone may be imported: ");
        json_array_foreach(json_object_get(policy, "allow"), i, name) {
                add_item(buf, &first, json_string_value(name));
        }
        for (i = 0; i < whole->allow_imports_n; i++)
                add_item(buf, &first, whole->allow_imports[i]);
        buf_printf(buf, "%s.\n", first ? "none" : "");
}

/* *ret: as JSON, or NULL if programs are not checked. */
static int find_policy(const struct settings *settings, const char *name, json_t **ret, struct csn_error *err)
{
        struct policies *policies = NULL;
        const struct policy *policy;
        *ret = NULL;
        if (!name || strcmp(name, "off") == 0)
                return 0;
        int rc = front_load_policies(settings, &policies, err);
        rc = rc < 0 ? rc : policies_find(policies, name, &policy, err);
        if (rc == 0)
                *ret = policy_describe(policy);
        policies_free(policies);
        return rc;
}

static void add_policy(struct buf *buf, json_t *policy, const struct run_request *whole)
{
        if (!policy)
                return;
        if (is_short_list(policy))
                add_allowed(buf, policy, whole);
        buf_printf(buf, "Programs with one of these are refused before they run (source policy %s): ", whole->policy);
        add_refused(buf, policy);
}

static void add_review(struct buf *buf, const struct settings *settings, const struct run_request *whole)
{
        int mode = whole->review > settings->review.mode ? whole->review : settings->review.mode;
        if (mode != review_mode_OFF)
                buf_printf(buf, "Another model reviews each program before it runs: %s.\n",
                        choices_review_mode.values[mode].meaning);
}

static void add_names(struct buf *buf, char *const *names, size_t n)
{
        bool first = true;
        for (size_t i = 0; i < n; i++)
                add_item(buf, &first, names[i]);
}

static void add_tools(struct buf *buf, const struct tools_request *tools, const json_t *live)
{
        if (live) {
                describe_tools(buf, live, tools);
                return;
        }
        if (!tools->allow_n) {
                if (tools->enabled)
                        buf_printf(buf, "Tools outside: a daemon has them, and a request names those that it calls.\n");
                return;
        }
        buf_printf(buf,
                "Tools outside, called as tools.NAME(name=value) in Python, await tools.NAME({name: value}) in JavaScript and tool NAME --name value in Bash: ");
        add_names(buf, tools->allow, tools->allow_n);
        if (tools->deny_n)
                buf_printf(buf, ", but not ");
        add_names(buf, tools->deny, tools->deny_n);
        buf_printf(buf, ". tools.list_tools() names them, tools.get_tool_info(NAME) says what one takes.\n");
}

/* As JSON strings: a user chooses the names, and a name must not look like a sentence of ours. */
static void add_files(struct buf *buf, const struct describe *about)
{
        bool first = true;
        if (!about->files_n)
                return;
        buf_printf(buf, "AVAILABLE FILES IN WORKING DIRECTORY:\n");
        for (size_t i = 0; i < about->files_n; i++) {
                struct arena arena = { 0 };
                size_t len;
                json_t *name = json_string(model_utf8(&arena, about->files[i], strlen(about->files[i]), &len));
                char *text = json_dumps(name, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
                add_item(buf, &first, text ? text : "\"\"");
                free(text);
                json_decref(name);
                arena_done(&arena);
        }
        buf_printf(buf, "\nIMPORTANT: Use these EXACT filenames (including brackets, spaces, parentheses) in your code.\n");
}

static void add_session(struct buf *buf, const struct describe *about)
{
        static const char *const texts[] = {
                [session_mode_NONE] =
                        "Each run has a sandbox of its own: no file and no variable of an earlier run is there.",
                [session_mode_FILES] = "Files in the home directory last from one run to the next; variables do not.",
                [session_mode_INTERPRETER] = "Variables and files last from one run to the next.",
        };
        if (about->by_context && about->session != session_mode_NONE)
                buf_printf(buf, "A run that names no context has a sandbox of its own. Of runs in one context: ");
        buf_printf(buf, "%s\n", texts[about->session]);
}

/* ---- the whole description ---- */

int front_describe(const struct settings *settings, const struct language *added, const struct describe *about,
        struct buf *buf, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct profile profile;
        struct run_request whole;
        json_t *policy = NULL;
        int rc = front_profile(settings, about->profile, &arena, &profile, &whole, err);
        rc = rc < 0 ? rc : find_policy(settings, whole.policy, &policy, err);
        if (rc == 0) {
                buf_printf(buf,
                        "Run a program in a closed sandbox, and get what it prints. A value is only seen when it is printed, or when it is the last "
                        "expression.\n");
                add_languages(buf, added, &profile);
                add_libraries(buf, settings, policy, &whole);
                add_limits(buf, &whole.limits);
                add_network(buf, &whole);
                add_tools(buf, &whole.tools, about->tools);
                add_policy(buf, policy, &whole);
                add_files(buf, about);
                add_review(buf, settings, &whole);
                add_session(buf, about);
        }
        json_decref(policy);
        arena_done(&arena);
        return rc;
}

const char front_run_code_fields[] =
        "code language stdin args env files profile limits network allow policy packages exports workspace context";

/* Defaults are the values of the profile and the settings, and not of fields.def. */
static void set_defaults(json_t *properties, const json_t *values)
{
        const char *name;
        json_t *property;
        json_object_foreach(properties, name, property) {
                json_t *value = json_object_get(values, name);
                if (value && json_object_get(property, "default"))
                        json_object_set(property, "default", value);
        }
}

json_t *front_run_code_schema(const struct settings *settings, const char *name)
{
        struct arena arena = { 0 };
        struct profile profile = { 0 };
        struct run_request whole;
        struct csn_error err;
        bool known = front_profile(settings, name, &arena, &profile, &whole, &err) == 0;
        json_t *schema = model_tool_schema(&object_run_request, front_run_code_fields,
                HAS(&profile.request, run_request, language) ? "code" : "code language");
        if (known) {
                json_t *values = model_encode(&object_run_request, &whole);
                json_t *limits = json_object_get(json_object_get(schema, "$defs"), "limits");
                set_defaults(json_object_get(schema, "properties"), values);
                set_defaults(json_object_get(limits, "properties"), json_object_get(values, "limits"));
                json_decref(values);
        }
        arena_done(&arena);
        return schema;
}

static json_t *as_openai(json_t *name, json_t *text, json_t *schema)
{
        return json_pack("{s:s, s:{s:O, s:O, s:O}}", "type", "function", "function", "name", name, "description", text,
                "parameters", schema);
}

static json_t *as_anthropic(json_t *name, json_t *text, json_t *schema)
{
        return json_pack("{s:O, s:O, s:O}", "name", name, "description", text, "input_schema", schema);
}

static json_t *as_mcp(json_t *name, json_t *text, json_t *schema)
{
        return json_pack("{s:O, s:O, s:O}", "name", name, "description", text, "inputSchema", schema);
}

static const struct { const char *name; json_t *(*wrap)(json_t *name, json_t *text, json_t *schema); } formats[] = {
        { "text", NULL }, { "openai", as_openai }, { "anthropic", as_anthropic }, { "mcp", as_mcp },
};

int front_describe_as(const struct settings *settings, const struct describe *about, const char *format,
        const char *text, struct buf *buf, struct csn_error *err)
{
        size_t i = 0;
        while (i < ARRAY_LEN(formats) && strcmp(formats[i].name, format) != 0)
                i++;
        if (i == ARRAY_LEN(formats))
                return err_field(err, "--format",
                        "there is no format \"%.40s\"; known are text, openai, anthropic, mcp", format);
        if (!formats[i].wrap) {
                buf_printf(buf, "%s", text);
                return 0;
        }
        json_t *name = json_string("run_code"), *words = json_string(text);
        json_t *schema = front_run_code_schema(settings, about->profile);
        json_t *tool = formats[i].wrap(name, words, schema);
        model_dump(tool, true, buf);
        buf_add(buf, "\n", 1);
        json_decref(tool);
        json_decref(name);
        json_decref(words);
        json_decref(schema);
        return 0;
}
