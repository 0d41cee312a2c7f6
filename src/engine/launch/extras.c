/*
 * The parts of a request that become files beside the program: its prelude, its modules, and its input as JSON; and the
 * limit of the program's own text.
 */
#include "engine/launch/launch_private.h"

#include <inttypes.h>
#include <stdio.h>

#define LONG_CODE 10000                /* characters of a "very long" program */

static int check_code_bytes(struct launch *launch, struct csn_error *err)
{
        const struct run_request *request = &launch->request;
        const struct bytes *code = &request->code;
        size_t characters = 0;
        if (code->len > request->limits.code_bytes)
                return err_field(err, "/code",
                        "the program has %zu bytes; code_bytes=%" PRIu64 " allows no more; write a shorter one, or raise the limit",
                        code->len, request->limits.code_bytes);
        for (size_t i = 0; i < code->len; i++)
                characters += ((unsigned char)code->bytes[i] & 0xc0) != 0x80;
        if (characters > LONG_CODE)
                launch_warn(launch, "long_code", "Code is very long (>%d characters)", LONG_CODE);
        return 0;
}

static int check_prelude(struct launch *launch, struct csn_error *err)
{
        const struct run_request *request = &launch->request;
        const struct language *language = launch->language;
        if (!HAS(request, run_request, prelude))
                return 0;
        if (!language->prelude)
                return err_field(err, "/prelude",
                        "%s has no prelude; a prelude is for python, javascript, typescript and bash", language->name);
        if (request->prelude.len > LAUNCH_PRELUDE_BYTES)
                return err_field(err, "/prelude", "the prelude has %zu bytes; at most %llu are possible",
                        request->prelude.len, LAUNCH_PRELUDE_BYTES);
        if (strcmp(launch->main_file, language->prelude) == 0)
                return err_field(err, "/name", "%s is the name of the prelude; give the program another one",
                        language->prelude);
        return 0;
}

static int check_module_name(const char *name, struct csn_error *err)
{
        struct csn_error why;
        size_t folders = 0;
        for (const char *c = name; *c; c++)
                folders += *c == '/';
        if (wire_name_check(name, strlen(name), &why) < 0)
                return err_field(err, "/modules", "\"%.80s\" cannot be the name of a module: %s", name, why.text);
        if (folders > LAUNCH_MODULE_FOLDERS)
                return err_field(err, "/modules", "\"%.80s\" is in %zu folders; at most %d are possible", name, folders,
                        LAUNCH_MODULE_FOLDERS);
        return 0;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Of sorted names, the first below another name, or equal to the name before; NULL: none. */
static const char *name_taken_twice(const char **names, size_t n, bool *ret_folder)
{
        for (size_t i = 0; i < n; i++) {
                *ret_folder = true;
                for (const char *slash = strchr(names[i], '/'); slash; slash = strchr(slash + 1, '/')) {
                        char folder[WIRE_NAME_MAX + 1];
                        const char *wanted = folder;
                        snprintf(folder, sizeof folder, "%.*s", (int)(slash - names[i]), names[i]);
                        if (bsearch(&wanted, names, n, sizeof *names, by_name))
                                return names[i];
                }
                *ret_folder = false;
                if (i > 0 && strcmp(names[i], names[i - 1]) == 0)
                        return names[i];
        }
        return NULL;
}

static int check_modules(struct launch *launch, struct csn_error *err)
{
        const struct run_request *request = &launch->request;
        const char **names = arena_alloc(&launch->arena, request->modules_n * sizeof *names + 1);
        uint64_t bytes = 0;
        bool folder;
        if (request->modules_n && launch->backend != &backend_native)
                return err_field(err, "/modules", "the backend %s has no read-only modules; use files",
                        launch->backend->name);
        if (request->modules_n > LAUNCH_MODULES_MAX)
                return err_field(err, "/modules", "%zu modules; at most %d are possible", request->modules_n,
                        LAUNCH_MODULES_MAX);
        for (size_t i = 0; i < request->modules_n; i++) {
                const struct module_file *module = &request->modules[i];
                if (check_module_name(module->name, err) < 0)
                        return -err->code;
                names[i] = module->name;
                bytes += module->content.len;
        }
        if (bytes > LAUNCH_MODULES_BYTES)
                return err_field(err, "/modules", "the modules have %" PRIu64 " bytes; at most %llu are possible together",
                        bytes, LAUNCH_MODULES_BYTES);
        qsort(names, request->modules_n, sizeof *names, by_name);
        const char *twice = name_taken_twice(names, request->modules_n, &folder);
        if (twice)
                return err_field(err, "/modules",
                        folder ? "a part of the name %.80s is itself a module" : "two modules have the name %.80s",
                        twice);
        return 0;
}

static int check_input(const struct launch *launch, struct csn_error *err)
{
        const struct run_request *request = &launch->request;
        if (HAS(request, run_request, input) && strlen(request->input) > LAUNCH_INPUT_BYTES)
                return err_field(err, "/input", "the input has %zu bytes of JSON; at most %llu are possible, use files",
                        strlen(request->input), LAUNCH_INPUT_BYTES);
        return 0;
}

int extras_check(struct launch *launch, struct csn_error *err)
{
        if (check_code_bytes(launch, err) < 0 || check_prelude(launch, err) < 0 || check_modules(launch, err) < 0)
                return -err->code;
        return check_input(launch, err);
}

size_t extras_inputs(const struct launch *launch, struct launch_input ret[LAUNCH_EXTRAS_MAX])
{
        const struct run_request *request = &launch->request;
        size_t n = 0;
        if (HAS(request, run_request, prelude))
                ret[n++] = (struct launch_input){
                        .name = launch->language->prelude, .content = request->prelude, .mode = 0444, .hidden = true
                };
        if (HAS(request, run_request, input))
                ret[n++] = (struct launch_input){ .name = LAUNCH_INPUT_NAME,
                        .content = { request->input, strlen(request->input) },
                        .mode = 0644,
                        .hidden = true };
        return n;
}
