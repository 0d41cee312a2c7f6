/* Checks across fields: names, packages, and fields reserved for callers on this host. */
#include "model/model.h"
#include "model/package_spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

/* Variables that make a loader or an interpreter run other code. */
static const struct {
        const char *name;
        bool prefix;
} refused_env[] = {
        { "LD_", true },          { "GLIBC_", true },       { "BASH_FUNC_", true },
        { "BASH_ENV", false },    { "ENV", false },         { "SHELLOPTS", false },     { "BASHOPTS", false },
        { "PYTHONPATH", false },  { "PYTHONHOME", false },  { "PYTHONSTARTUP", false },
        { "NODE_OPTIONS", false }, { "NODE_PATH", false },  { "PERL5LIB", false },      { "PERL5OPT", false },
};

static bool is_name(const char *name)
{
        if (!((name[0] >= 'A' && name[0] <= 'Z') || (name[0] >= 'a' && name[0] <= 'z') || name[0] == '_'))
                return false;
        return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
               strlen(name);
}

static int check_env(const struct run_request *request, struct csn_error *err)
{
        for (size_t i = 0; i < request->env_n; i++) {
                const char *name = request->env[i].name;
                if (!is_name(name))
                        return err_field(err, "/env",
                                         "\"%.60s\" is not a name for an environment variable; letters, "
                                         "digits and _ are allowed, not beginning with a digit",
                                         name);
                for (size_t k = 0; k < ARRAY_LEN(refused_env); k++)
                        if (refused_env[k].prefix
                                    ? strncmp(name, refused_env[k].name, strlen(refused_env[k].name)) == 0
                                    : strcmp(name, refused_env[k].name) == 0)
                                return err_field(err, "/env",
                                                 "the variable %.60s is refused: it would change which code "
                                                 "the interpreter or the loader runs; set what you need "
                                                 "inside the program",
                                                 name);
        }
        return 0;
}

static int check_local(const struct run_request *request, struct csn_error *err)
{
        if (HAS(request, run_request, work_dir))
                return err_field(err, "/work_dir",
                                 "work_dir names a folder of the server; only the command line and the "
                                 "library may do that");
        for (size_t i = 0; i < request->exports_n; i++)
                if (HAS(&request->exports[i], export_rule, path))
                        return err_field(err, "/exports",
                                         "path names a folder of the server; only the command line and the library "
                                         "may do that; leave it out, and over HTTP the file is kept");
        for (size_t i = 0; i < request->files_n; i++)
                if (HAS(&request->files[i], input_file, path))
                        return err_field(err, "/files",
                                         "path names a file of the server; only the command line and the "
                                         "library may do that; send the content");
        return 0;
}

static int check_files(const struct run_request *request, struct csn_error *err)
{
        for (size_t i = 0; i < request->files_n; i++) {
                const struct input_file *file = &request->files[i];
                if (HAS(file, input_file, content) + HAS(file, input_file, path) + HAS(file, input_file, id) != 1)
                        return err_field(err, "/files",
                                         "file %zu needs one of content (or content_base64), path and id", i);
                if (!HAS(file, input_file, name) && HAS(file, input_file, content))
                        return err_field(err, "/files", "file %zu has no name", i);
        }
        return 0;
}

static int check_workspace(const struct run_request *request, struct csn_error *err)
{
        if (!HAS(request, run_request, workspace))
                return 0;
        if (!request->workspace[0])
                return err_field(err, "/workspace", "a workspace has a name");
        if (HAS(request, run_request, work_dir))
                return err_field(err, "/workspace", "a run works in a workspace or in a work_dir");
        return 0;
}

/* A module's name as for import and require; the name becomes part of a comma list. */
static int check_preload(const struct run_request *request, struct csn_error *err)
{
        for (size_t i = 0; i < request->preload_n; i++)
                if (!request->preload[i][0] || strpbrk(request->preload[i], ",=: \t\n"))
                        return err_field(err, "/preload", "\"%.60s\" is not the name of a module",
                                         request->preload[i]);
        return 0;
}

/* ---- packages ---- */

#define LINE_MAX_BYTES 16384 /* splitting takes quadratic time */

/* The language of an entry without a name of a language is not known here: a name and a version of either is right. */
static bool is_package(const char *text, struct arena *arena, struct csn_error *err)
{
        struct csn_error other;
        const char *language = package_entry_language(&text);
        if (language) {
                struct package_set set = { .arena = arena, .language = language };
                return package_set_add(&set, text, "/packages", err) == 0;
        }
        struct package_set python = { .arena = arena, .language = "python" },
                           node = { .arena = arena, .language = "javascript" };
        return package_set_add(&node, text, "/packages", &other) == 0 ||
                package_set_add(&python, text, "/packages", err) == 0;
}

/* A list from a single text has the bounds of a list. */
static int check_list(const struct field *field, char *const *texts, size_t n, struct csn_error *err)
{
        char where[64];
        snprintf(where, sizeof where, "/%s", field->name);
        if (n > field->max)
                return err_field(err, where, "%s has %zu items; at most %" PRIu64 " are allowed", field->name,
                                 n, field->max);
        for (size_t i = 0; i < n; i++)
                if (strlen(texts[i]) > field->max_length)
                        return err_field(err, where,
                                         "\"%.60s...\" has %zu bytes; at most %" PRIu64 " are allowed",
                                         texts[i], strlen(texts[i]), field->max_length);
        return 0;
}

static int check_packages(char *const *packages, size_t n, struct csn_error *err)
{
        if (check_list(model_field(&object_run_request, "packages"), packages, n, err) < 0)
                return -CSN_E_INPUT;
        struct arena arena = { 0 };
        int rc = 0;
        for (size_t i = 0; i < n && rc == 0; i++)
                rc = is_package(packages[i], &arena, err) ? 0 : -CSN_E_INPUT;
        arena_done(&arena);
        return rc;
}

/* A part without blanks and quotes around; a comma in brackets or after a comparison belongs to the part. */
static char *take_part(const char **at, struct arena *arena)
{
        unsigned brackets = 0;
        const char *from = *at;
        for (; **at; (*at)++) {
                if (**at == '[')
                        brackets++;
                else if (**at == ']' && brackets)
                        brackets--;
                bool more_versions = **at == ',' && strpbrk(from, "<>=~!") && strpbrk(from, "<>=~!") < *at &&
                                     strchr("<>=~!", (*at)[1 + strspn(*at + 1, " ")]) &&
                                     (*at)[1 + strspn(*at + 1, " ")];
                if (!brackets && !more_versions && strchr(",;\n", **at))
                        break;
        }
        const char *to = *at;
        if (**at)
                (*at)++;
        while (from < to && strchr(" \t\r\"'", *from))
                from++;
        while (to > from && strchr(" \t\r\"'", to[-1]))
                to--;
        return arena_copy(arena, from, (size_t)(to - from));
}

int model_parse_packages(const char *text, struct arena *arena, char ***ret, size_t *ret_n,
                         struct csn_error *err)
{
        size_t n = 0;
        if (strlen(text) > LINE_MAX_BYTES)
                return err_field(err, "/packages", "a line of packages has at most %d bytes", LINE_MAX_BYTES);
        if (strchr(text, '\n'))
                return err_field(err, "/packages", "a list of packages is one line; separate them by commas");
        char **packages = arena_alloc(arena, (strlen(text) + 1) * sizeof *packages);
        for (const char *at = text; *at;) {
                char *part = take_part(&at, arena);
                bool known = part[0] == 0;
                for (size_t i = 0; i < n && !known; i++)
                        known = strcasecmp(packages[i], part) == 0;
                if (!known)
                        packages[n++] = part;
        }
        if (check_packages(packages, n, err) < 0)
                return -CSN_E_INPUT;
        *ret = packages;
        *ret_n = n;
        return 0;
}

int model_parse_list(const struct field *field, const char *text, struct arena *arena, char ***ret,
                     size_t *ret_n, struct csn_error *err)
{
        if (strcmp(field->name, "packages") == 0)
                return model_parse_packages(text, arena, ret, ret_n, err);
        char **parts = arena_alloc(arena, (strlen(text) + 1) * sizeof *parts);
        size_t n = 0;
        for (const char *at = text; *at;) {
                char *part = take_part(&at, arena);
                if (part[0])
                        parts[n++] = part;
        }
        if (check_list(field, parts, n, err) < 0)
                return -CSN_E_INPUT;
        *ret = parts;
        *ret_n = n;
        return 0;
}

int model_check_request(const struct run_request *request, bool local, struct csn_error *err)
{
        if (check_env(request, err) < 0 || check_files(request, err) < 0 || check_preload(request, err) < 0 ||
            check_workspace(request, err) < 0)
                return -CSN_E_INPUT;
        if (!local && check_local(request, err) < 0)
                return -CSN_E_INPUT;
        return check_packages(request->packages, request->packages_n, err);
}
