/*
 * caisson image test: programs with the interpreters and libraries of an image, in sandboxes of an engine of this
 * process.
 *
 * The libraries come from the image's own list (/usr/share/caisson/libraries of the image), from the layers pinned to
 * the image by images.layers, and from the command line.  A library with a program in image_libraries.def is written
 * with and read back; any other is imported.
 */
#include "front/remote/remote.h"

#include "engine/engine.h"
#include "images/images.h"
#include "packages/packages.h"

#include <ctype.h>
#include <stdio.h>

#define WALL_MS 60000
#define MEMORY_BYTES (1024 * MIB)

static const struct {
        const char *distribution, *program;
} libraries[] = {
#define LIBRARY(distribution, program) { distribution, program },
#include "front/remote/image_libraries.def"
#undef LIBRARY
};

/* Its first line is NAME = the distribution.  The program ends with 3 if there is no such distribution. */
static const char begin[] = "import importlib.metadata\n"
                            "try: found = importlib.metadata.distribution(NAME)\n"
                            "except importlib.metadata.PackageNotFoundError: raise SystemExit(3)\n"
                            "print(found.version)\n";

/* The top-level modules of the distribution found. */
static const char import_all[] = "import importlib\n"
                                 "names = (found.read_text('top_level.txt') or '').split()\n"
                                 "names = names or sorted({f.parts[0].partition('.')[0] for f in found.files or () if f.suffix == '.py'})\n"
                                 "assert names, 'it has no module'\n"
                                 "for name in names: importlib.import_module(name)\n";

struct trial {
        const char *name;    /* of a language or a distribution */
        const char *state;   /* "ok", "imported", "missing", "failed" */
        char detail[300];    /* version, or the error */
};

struct tester {
        struct remote *remote;
        struct engine *engine;
        const struct stored_image *image;
        bool done;
        struct trial *trial; /* of the running program */
        bool imports;        /* the program does no more than import */
        const char **pinned; /* distributions of Python in the layers of the image; in the arena of the remote */
        size_t pinned_n;
};

static void first_line(const char *text, size_t len, char *ret, size_t size)
{
        size_t n = 0;
        for (; n < len && text[n] != '\n' && n + 1 < size; n++)
                ret[n] = isprint((unsigned char)text[n]) ? text[n] : '?';
        ret[n] = 0;
}

/* The distributions of Python in the layers of a program: "six" of "six==1.16.0". */
static void note_layers(struct tester *tester, const struct run_result *result)
{
        struct arena *arena = &tester->remote->arena;
        for (size_t i = 0; i < result->layers_n; i++) {
                const struct layer_use *layer = &result->layers[i];
                if (strcmp(layer->language, "python") != 0 || tester->pinned)
                        continue;
                tester->pinned = arena_alloc(arena, (layer->packages_n + 1) * sizeof *tester->pinned);
                for (size_t k = 0; k < layer->packages_n; k++)
                        tester->pinned[k] = arena_copy(arena, layer->packages[k], strcspn(layer->packages[k], "="));
                tester->pinned_n = layer->packages_n;
        }
}

static void on_done(void *owner, const struct run_result *result)
{
        struct tester *tester = owner;
        struct trial *trial = tester->trial;
        bool failed = HAS(result, run_result, error);
        tester->done = true;
        note_layers(tester, result);
        if (result->status == status_COMPLETED) {
                trial->state = tester->imports ? "imported" : "ok";
                first_line(result->stdout.bytes, result->stdout.len, trial->detail, sizeof trial->detail);
        } else if (HAS(result, run_result, exit_code) && result->exit_code == 3) {
                trial->state = "missing";
        } else {
                trial->state = "failed";
                const char *type = failed && HAS(&result->error, failure, type) ? result->error.type : "";
                const char *text =
                        failed && result->error.message ? result->error.message : status_name(result->status);
                snprintf(trial->detail, sizeof trial->detail, "%s%s", type, type[0] ? ": " : "");
                size_t len = strlen(trial->detail);
                first_line(text, strlen(text), trial->detail + len, sizeof trial->detail - len);
        }
}

static int run_program(struct tester *tester, const char *language, const char *code, struct csn_error *err)
{
        static const struct run_events events = { .done = on_done };
        struct run *run = run_new(tester->engine);
        struct run_request *request = run_request(run);
        struct arena *arena = run_arena(run);
        int rc = 0;
        run_set_unreviewed(run);
        SET(request, run_request, language, arena_text(arena, "%s", language));
        SET(request, run_request, code, ((struct bytes){ arena_text(arena, "%s", code), strlen(code) }));
        SET(request, run_request, image, arena_text(arena, "%s", tester->image->name));
        SET(&request->limits, limits, wall_ms, WALL_MS);
        SET(&request->limits, limits, memory_bytes, MEMORY_BYTES);
        MARK(request, run_request, limits);
        tester->done = false;
        run_start(run, true, &events, tester);
        while (rc == 0 && !tester->done)
                rc = engine_step(tester->engine, -1, err);
        run_free(run);
        return rc;
}

/* ---- libraries of an image test ---- */

/* PEP 503: case, and the choice of - _ . make no difference. */
static bool is_same_name(const char *a, const char *b)
{
        for (; *a && *b; a++, b++) {
                bool dash = strchr("-_.", *a) && strchr("-_.", *b);
                if (!dash && tolower((unsigned char)*a) != tolower((unsigned char)*b))
                        return false;
        }
        return !*a && !*b;
}

static int try_library(struct tester *tester, const char *name, struct trial *ret, struct csn_error *err)
{
        const char *use = NULL;
        struct buf program;
        *ret = (struct trial){ .name = name, .state = "failed" };
        tester->trial = ret;
        for (size_t i = 0; i < ARRAY_LEN(libraries); i++)
                if (is_same_name(libraries[i].distribution, name))
                        use = libraries[i].program;
        if (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != strlen(name)) {
                snprintf(ret->detail, sizeof ret->detail, "it is no name of a distribution");
                return 0;
        }
        tester->imports = !use;
        buf_init(&program, 65536);
        buf_printf(&program, "NAME = '%s'\n%s%s", name, begin, use ? use : import_all);
        int rc = run_program(tester, "python", program.bytes, err);
        buf_done(&program);
        return rc;
}

static int try_interpreters(struct tester *tester, struct trial trials[static IMAGE_LANGUAGES], size_t *ret_n,
        struct csn_error *err)
{
        static const struct {
                const char *language, *code;
        } programs[IMAGE_LANGUAGES] = {
                [IMAGE_PYTHON] = { "python", "import sys, json, zlib\nprint(sys.version.split()[0])" },
                [IMAGE_NODE] = { "javascript", "console.log(process.version)" },
                [IMAGE_BASH] = { "bash", "echo $BASH_VERSION" },
        };
        tester->imports = false;
        for (int i = 0; i < IMAGE_LANGUAGES; i++) {
                if (!tester->image->interpreters[i].path[0])
                        continue;
                tester->trial = &trials[(*ret_n)++];
                *tester->trial = (struct trial){ .name = image_language_name((enum image_language)i) };
                if (run_program(tester, programs[i].language, programs[i].code, err) < 0)
                        return -err->code;
        }
        return 0;
}

/* ---- the command ---- */

static int report(const struct remote *remote, const struct trial *trials, size_t n)
{
        struct buf buf;
        json_t *json = json_array();
        int status = 0;
        buf_init(&buf, MIB);
        for (size_t i = 0; i < n; i++) {
                bool good = strcmp(trials[i].state, "ok") == 0 || strcmp(trials[i].state, "imported") == 0;
                status = good ? status : 1;
                cli_add_cell(&buf, 24, trials[i].name);
                cli_add_cell(&buf, 9, trials[i].state);
                cli_add_cell(&buf, 100, trials[i].detail);
                cli_end_line(&buf);
                json_array_append_new(json, json_pack("{s:s, s:s, s:s}", "name", trials[i].name, "state",
                                                    trials[i].state, "detail", trials[i].detail));
        }
        if (remote_option(remote, "json"))
                cli_print_json(json_incref(json));
        else if (n)
                fputs(buf.bytes, stdout);
        json_decref(json);
        buf_done(&buf);
        return status;
}

static bool is_expected(const struct tester *tester, const char *name)
{
        for (size_t i = 0; i < tester->image->expected_n; i++)
                if (is_same_name(tester->image->expected[i], name))
                        return true;
        return false;
}

static int try_all(struct tester *tester, struct trial **ret, size_t *ret_n, struct csn_error *err)
{
        const struct remote *remote = tester->remote;
        const struct stored_image *image = tester->image;
        struct trial interpreters[IMAGE_LANGUAGES];
        size_t n = 0;
        if (try_interpreters(tester, interpreters, &n, err) < 0)
                return -err->code;
        struct trial *trials = arena_alloc(&tester->remote->arena,
                (n + image->expected_n + tester->pinned_n + remote->args_n) * sizeof *trials);
        memcpy(trials, interpreters, n * sizeof *trials);
        for (size_t i = 0; i < image->expected_n; i++)
                if (try_library(tester, image->expected[i], &trials[n++], err) < 0)
                        return -err->code;
        for (size_t i = 0; i < tester->pinned_n; i++)
                if (!is_expected(tester, tester->pinned[i]) &&
                        try_library(tester, tester->pinned[i], &trials[n++], err) < 0)
                        return -err->code;
        for (size_t i = 1; i < remote->args_n; i++)
                if (try_library(tester, remote->args[i], &trials[n++], err) < 0)
                        return -err->code;
        *ret = trials;
        *ret_n = n;
        return 0;
}

/* The layers pinned to the image, if any; nothing is built. */
static int open_layers(struct tester *tester, struct csn_error *err)
{
        struct remote *remote = tester->remote;
        struct packages *packages;
        const char *const *ids;
        size_t n;
        if (image_pins(remote->settings.images.layers, tester->image->name, &remote->arena, &ids, &n, err) < 0)
                return -err->code;
        if (!n)
                return 0;
        if (packages_prepare(&remote->settings, &packages, err) < 0)
                return -err->code;
        return packages_open(packages, tester->engine, err);
}

int remote_test_image(struct remote *remote)
{
        struct csn_error err = { 0 };
        struct stored_image image;
        struct trial *trials = NULL;
        struct tester tester = { .remote = remote, .image = &image };
        size_t n = 0;
        auto_fd held = -1;
        int rc = image_find(settings_images_dir(&remote->settings, &remote->arena), remote->args[0], "name",
                &remote->arena, &image, &held, &err);
        rc = rc < 0 ? rc : engine_open(&remote->settings, &tester.engine, &err);
        if (rc < 0)
                return cli_fail(&err);
        rc = open_layers(&tester, &err);
        rc = rc < 0 ? rc : try_all(&tester, &trials, &n, &err);
        engine_close(tester.engine);
        return rc < 0 ? cli_fail(&err) : report(remote, trials, n);
}
