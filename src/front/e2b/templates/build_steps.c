/* The steps of a build, as JSON of a client: their check, their change of the build spec, and their commands. */
#include "front/e2b/templates/build.h"

#include "model/package_spec.h"

#include <stdio.h>

/* A new or empty folder is given to the user of the steps. */
static const char workdir_script[] =
        "mkdir -p -- \"$1\" && { [ -n \"$(ls -A -- \"$1\")\" ] || chown -- \"$2:\" \"$1\"; }";

/*
 * $1: folder of the archive, with paths relative to the client's folder; $2: the source; $3: the destination; $4: the
 * owner; $5: the mode, or "".  A folder gives its content, as COPY of a Dockerfile does.
 */
static const char copy_script[] =
        "set -e; shopt -s dotglob nullglob; src=${2%/}; src=${src#./}; cd -- \"$1\"\n"
        "whole=; [ \"${src:-.}\" != . ] || whole=1; above=$(dirname -- \"${src:-.}\"); [ -z \"$whole\" ] && [ -d \"$above\" ] && cd -- \"$above\"\n"
        "base=$(basename -- \"$src\"); wild='*[*?[{(]*'; [ -n \"$whole\" ] || [[ $src == $wild ]] || [ -e \"$base\" ] || [ -L \"$base\" ] || { echo \"there is no '$2' in the archive\" >&2; exit 1; }\n"
        "entries=(*); [ ${#entries[@]} -gt 0 ] || { echo \"there is nothing in '$2'\" >&2; exit 1; }\n"
        "chown -R -h -- \"$4:\" \"${entries[@]}\"; [ -z \"$5\" ] || chmod -R -- \"$5\" \"${entries[@]}\"\n"
        "folder() { [ -d \"$1\" ] || { mkdir -p -- \"$1\"; chown -- \"$owner:\" \"$1\"; }; }; owner=$4\n"
        "if [ ${#entries[@]} = 1 ] && [ -z \"$whole\" ] && [ -d \"${entries[0]}\" ] && [ ! -L \"${entries[0]}\" ]; then folder \"$3\"; cp -a -- \"${entries[0]}/.\" \"$3/\"\n"
        "elif [ ${#entries[@]} = 1 ] && [ -z \"$whole\" ] && [ \"${3%/}\" = \"$3\" ] && [ ! -d \"$3\" ]; then folder \"$(dirname -- \"$3\")\"; cp -a -T -- \"${entries[0]}\" \"$3\"\n"
        "else folder \"$3\"; cp -a -- \"${entries[@]}\" \"$3/\"; fi\n"
        "cd /; rm -rf -- \"$1\"";

const char *build_step_arg(const json_t *step, size_t i)
{
        const char *text = json_string_value(json_array_get(json_object_get(step, "args"), i));
        return text ? text : "";
}

int build_steps_check(const json_t *steps, struct csn_error *err)
{
        static const char *const types[] = { "RUN", "COPY", "WORKDIR", "USER", "ENV" };
        const json_t *step, *arg;
        size_t i, j;
        size_t len = steps ? json_dumpb(steps, NULL, 0, JSON_COMPACT) : 0;
        if (steps && (!json_is_array(steps) || json_array_size(steps) > BUILD_STEPS_MAX || len > BUILD_STEPS_BYTES))
                return err_field(err, "steps", "steps has to be a list of at most %d, with %llu bytes as JSON",
                        BUILD_STEPS_MAX, BUILD_STEPS_BYTES);
        json_array_foreach(steps, i, step) {
                bool known = false;
                for (size_t k = 0; k < ARRAY_LEN(types); k++)
                        known = known || strcmp(e2b_text(step, "type"), types[k]) == 0;
                if (!known)
                        return err_field(err, "steps",
                                "step %zu is \"%.40s\"; it has to be RUN, COPY, WORKDIR, USER or ENV", i + 1,
                                e2b_text(step, "type"));
                json_array_foreach(json_object_get(step, "args"), j, arg) {
                        if (!json_is_string(arg) || strlen(json_string_value(arg)) != json_string_length(arg))
                                return err_field(err, "steps", "step %zu: its args have to be texts without NUL",
                                        i + 1);
                }
                if (!json_array_size(json_object_get(step, "args")))
                        return err_field(err, "steps", "step %zu has no args", i + 1);
        }
        return 0;
}

/* Relative paths start at the working folder. */
static int resolve(const json_t *build_spec, const char *path, char ret[static GUEST_PATH_MAX], struct csn_error *err)
{
        const char *folder = e2b_text(build_spec, "workdir");
        bool is_whole = path[0] == '/';
        int len = snprintf(ret, GUEST_PATH_MAX, "%s%s%s", is_whole || strcmp(folder, "/") == 0 ? "" : folder,
                is_whole ? "" : "/", path);
        if (len < GUEST_PATH_MAX)
                return 0;
        return err_set(err, CSN_E_INPUT, 0, "the path '%.60s...' has %d bytes, at most %d are possible", ret, len,
                GUEST_PATH_MAX - 1);
}

/* Names and values in turn.  Clients send "A=B" as two names if A=B has no value of its own. */
static int set_env(json_t *build_spec, const json_t *step, struct csn_error *err)
{
        size_t n = json_array_size(json_object_get(step, "args"));
        for (size_t i = 0; i < n; i += 2) {
                const char *name = build_step_arg(step, i);
                if (!name[0] || strchr(name, '=') || i + 1 == n)
                        return err_set(err, CSN_E_INPUT, 0,
                                "ENV '%.60s': a name without = and a value belong together; a value with blanks needs quotes",
                                name);
                json_object_set_new(json_object_get(build_spec, "env"), name, json_string(build_step_arg(step, i + 1)));
        }
        return 0;
}

int build_step_apply(json_t *build_spec, const json_t *step, struct csn_error *err)
{
        const char *type = e2b_text(step, "type"), *first = build_step_arg(step, 0);
        char path[GUEST_PATH_MAX];
        int account;
        if (strcmp(type, "ENV") == 0 && set_env(build_spec, step, err) < 0)
                return -err->code;
        if (strcmp(type, "USER") == 0 && (!first[0] || !e2b_account(first, &account)))
                return err_set(err, CSN_E_INPUT, 0, "USER '%.60s': there are user and root", first);
        if (strcmp(type, "USER") == 0)
                json_object_set_new(build_spec, "user", json_string(first));
        if (strcmp(type, "WORKDIR") == 0) {
                if (resolve(build_spec, first, path, err) < 0)
                        return -err->code;
                json_object_set_new(build_spec, "workdir", json_string(path));
        }
        size_t len = json_dumpb(build_spec, NULL, 0, JSON_COMPACT);
        if (len > BUILD_SPEC_BYTES)
                return err_set(err, CSN_E_INPUT, 0,
                        "environment, folder and commands of the template have %zu bytes as JSON, %llu are possible",
                        len, BUILD_SPEC_BYTES);
        return 0;
}

bool build_step_changes_files(const json_t *step)
{
        const char *type = e2b_text(step, "type");
        return strcmp(type, "RUN") == 0 || strcmp(type, "COPY") == 0 || strcmp(type, "WORKDIR") == 0;
}

int build_step_command(const json_t *build_spec, const json_t *step, int helper, char path[static GUEST_PATH_MAX],
        struct build_command_what *ret, struct csn_error *err)
{
        const char *type = e2b_text(step, "type"), *user = e2b_text(build_spec, "user"),
                   *owner = build_step_arg(step, 2), *as = build_step_arg(step, 1);
        *ret = (struct build_command_what){ .account = helper, .folder = "/" };
        if (strcmp(type, "COPY") == 0) {
                if (resolve(build_spec, as, path, err) < 0)
                        return -err->code;
                ret->command = copy_script;
                const char *args[] = { BUILD_CONTEXT, build_step_arg(step, 0), path, owner[0] ? owner : user,
                        build_step_arg(step, 3), NULL };
                memcpy(ret->args, args, sizeof args);
        } else if (strcmp(type, "WORKDIR") == 0) {
                ret->command = workdir_script;
                ret->args[0] = e2b_text(build_spec, "workdir");
                ret->args[1] = user;
        } else {
                if (!e2b_account(as[0] ? as : user, &ret->account))
                        return err_set(err, CSN_E_INPUT, 0, "RUN as '%.60s': there are user and root", as);
                ret->folder = e2b_text(build_spec, "workdir");
                ret->env = json_object_get(build_spec, "env");
                ret->command = build_step_arg(step, 0);
        }
        return 0;
}

/* ---- installations ---- */

/* Commands made by clients from pipInstall() and npmInstall(), and options without effect on a layer. */
static const struct installer {
        const char *begin, *language, *name; /* name: in front of a package in the field packages */
        const char *const *options;
} installers[] = {
        { "pip install ", "python", "python", (const char *const[]){ "--user", NULL } },
        { "npm install ", "javascript", "node", (const char *const[]){ "-g", NULL } },
};

static const char *index_of(const struct settings *settings, const struct installer *installer)
{
        return strcmp(installer->language, "python") == 0 ? settings->python_packages.index_url
                                                          : settings->node_packages.registry_url;
}

static bool is_option(const struct installer *installer, const char *word)
{
        for (size_t i = 0; installer->options[i]; i++)
                if (strcmp(installer->options[i], word) == 0)
                        return true;
        return false;
}

/* Add the packages behind the begin of a command; false: a word is neither a package nor a known option. */
static bool add_packages(const struct installer *installer, const char *words, struct arena *arena, json_t *ret)
{
        struct package_set set = { .arena = arena, .language = installer->language };
        struct csn_error err;
        for (const char *at = words + strspn(words, " "); *at; at += strspn(at, " ")) {
                size_t len = strcspn(at, " ");
                const char *word = arena_copy(arena, at, len);
                at += len;
                if (is_option(installer, word))
                        continue;
                if (strpbrk(word, ",;") || package_set_add(&set, word, "steps", &err) < 0)
                        return false;
                json_array_append_new(ret, json_sprintf("%s:%s", installer->name, word));
        }
        return set.n > 0;
}

bool build_step_packages(const struct settings *settings, const json_t *step, json_t *ret)
{
        const char *command = build_step_arg(step, 0);
        struct arena arena = { 0 };
        json_t *found = json_array();
        bool installs = false;
        for (size_t i = 0; i < ARRAY_LEN(installers) && strcmp(e2b_text(step, "type"), "RUN") == 0; i++) {
                const char *begin = installers[i].begin;
                if (strncmp(command, begin, strlen(begin)) == 0 && index_of(settings, &installers[i])[0])
                        installs = add_packages(&installers[i], command + strlen(begin), &arena, found);
        }
        if (installs && ret)
                json_array_extend(ret, found);
        json_decref(found);
        arena_done(&arena);
        return installs;
}
