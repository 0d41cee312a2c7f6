/*
 * caisson doctor: libraries of Python taken for granted by programs for E2B's code interpreter.  E2B's template has no
 * packages of Node, so there is no list for Node.
 */
#include "front/cli/cli.h"

#include "sandbox/sandbox.h"

/* Modules of the libraries in template/requirements.txt of e2b-dev/code-interpreter (read 2026-11-28). */
static const char program[] =
        "import importlib.util\n"
        "modules = '''aiohttp bs4 bokeh gensim imageio joblib librosa matplotlib nltk numpy cv2 openpyxl orjson pandas PIL\n"
        "plotly pytest docx pytz requests skimage sklearn scipy seaborn soundfile spacy sympy textblob tornado urllib3\n"
        "xarray xlrd'''.split()\n"
        "missing = [name for name in modules if not importlib.util.find_spec(name)]\n"
        "print(len(modules) - len(missing), len(modules), *missing)\n";

static void on_done(void *owner, const struct run_result *result)
{
        struct doctor_check *check = owner;
        unsigned there = 0, all = 0;
        int names = 0;
        char text[1000];
        snprintf(text, sizeof text, "%.*s", (int)min_u64(result->stdout.len, sizeof text - 1),
                result->stdout.bytes ? result->stdout.bytes : "");
        text[strcspn(text, "\n")] = 0;
        check->name = "libraries of E2B's users";
        check->state = CHECK_NOTE;
        if (result->status != status_COMPLETED || sscanf(text, "%u %u %n", &there, &all, &names) != 2) {
                snprintf(check->fact, sizeof check->fact, "Python could not be asked: %.100s",
                        status_name(result->status));
                return;
        }
        check->state = there == all ? CHECK_OK : CHECK_NOTE;
        snprintf(check->fact, sizeof check->fact, "%u of %u modules can be imported here", there, all);
        if (there < all)
                snprintf(check->remedy, sizeof check->remedy,
                        "Debian's python3 packages, an image, or packages of a request; missing: %.300s",
                        text + names);
}

void cli_look_at_libraries(const struct settings *settings, struct doctor_check *ret)
{
        static const struct run_events events = { .done = on_done };
        static char language[] = "python", off[] = "off";
        struct engine *engine = NULL;
        struct csn_error err;
        *ret = (struct doctor_check){ 0 };
        int rc = engine_open(settings, &engine, &err);
        if (rc == 0) {
                struct run *run = run_new(engine);
                struct run_request *request = run_request(run);
                run_set_unreviewed(run);
                SET(request, run_request, language, language);
                SET(request, run_request, code, ((struct bytes){ (char *)(uintptr_t)program, sizeof program - 1 }));
                SET(request, run_request, policy, off);
                run_start(run, true, &events, ret);
                while (rc == 0 && !ret->name)
                        rc = engine_step(engine, -1, &err);
        }
        engine_close(engine);
        if (rc < 0) {
                *ret = (struct doctor_check){ .name = "libraries of E2B's users", .state = CHECK_NOTE };
                snprintf(ret->fact, sizeof ret->fact, "%.159s", err.text);
        }
}
