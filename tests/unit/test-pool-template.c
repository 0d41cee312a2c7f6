/*
 * The pod of a worker, beside golden files (tests/data/kubernetes/pod-*.json).  With the word --update the program
 * writes the golden files.
 */
#include "gateway/pool/template.h"

#include "tap.h"

#include <fcntl.h>

#define FOLDER "tests/data/kubernetes/"
#define TEMPLATE_YAML "kubernetes.template_file=tests/data/kubernetes/template.yaml"
#define TEMPLATE_JSON "kubernetes.template_file=tests/data/kubernetes/pod-from-file.json"

static bool update;
static char *const no_env[] = { "XDG_CONFIG_HOME=/none", NULL };

static int make(const char *const *flags, json_t **ret, struct csn_error *err)
{
        struct settings settings;
        int rc = settings_load(&(struct settings_sources){ .flags = flags, .env = no_env }, &settings, err);
        if (rc == 0)
                rc = pool_template_new(&settings, ret, err);
        settings_done(&settings);
        return rc;
}

#define FLAGS(...) ((const char *const[]){ "kubernetes.mode=owned", __VA_ARGS__, NULL })

static void write_golden(const json_t *pod, const char *path)
{
        FILE *file = fopen(path, "we");
        CHECK(file && json_dumpf(pod, file, JSON_INDENT(1)) == 0 && fputc('\n', file) == '\n' && fclose(file) == 0);
}

/* Whether the pod is that of the golden file; the hash is compared by itself. */
static bool is_golden(const char *const *flags, const char *name)
{
        struct csn_error err;
        json_t *pod = NULL, *wanted;
        char path[300];
        snprintf(path, sizeof path, FOLDER "pod-%s.json", name);
        if (make(flags, &pod, &err) < 0) {
                printf("# %s: %s\n", name, err.text);
                return false;
        }
        json_object_del(json_object_get(json_object_get(pod, "metadata"), "annotations"), "caisson.dev/template");
        if (update)
                write_golden(pod, path);
        wanted = json_load_file(path, 0, NULL);
        bool same = wanted && json_equal(pod, wanted);
        char *text = same ? NULL : json_dumps(pod, JSON_COMPACT);
        if (text)
                printf("# %s: %s\n", name, text);
        free(text);
        json_decref(pod);
        json_decref(wanted);
        return same;
}

static char *hash_of(const char *const *flags)
{
        struct csn_error err;
        json_t *pod = NULL;
        if (make(flags, &pod, &err) < 0)
                return NULL;
        char *hash = mem_copy(pool_template_hash(pod), strlen(pool_template_hash(pod)));
        json_decref(pod);
        return hash;
}

static bool refused(const char *const *flags, const char *word)
{
        struct csn_error err = { 0 };
        json_t *pod = NULL;
        bool good = make(flags, &pod, &err) == -CSN_E_CONFIG && strstr(err.text, word);
        if (!good)
                printf("# %s\n", err.text);
        json_decref(pod);
        return good;
}

static void the_built_in_pods_are_the_golden_ones(void)
{
        if (access(FOLDER, R_OK) < 0)
                SKIP("needs the source folder: tests/data/kubernetes");
        CHECK(is_golden(FLAGS("kubernetes.image=caisson:1"), "tier-b"));
        CHECK(is_golden(FLAGS("kubernetes.image=caisson:1", "kubernetes.run_as_user=0", "kubernetes.key_secret=fleet",
                                "gateway.keys=gateway", "kubernetes.service_account=worker", "kubernetes.tls=true",
                                "kubernetes.port=8443", "kubernetes.cpu_request=500m", "kubernetes.memory_request=128Mi",
                                "kubernetes.grace=60", "kubernetes.selector=app=py,tier==x"),
                "tier-a"));
        CHECK(is_golden(FLAGS("kubernetes.image=caisson:1", "kubernetes.seccomp_profile="), "runtime-default"));
}

static void a_file_is_completed_by_labels_image_and_sizes(void)
{
        if (access(FOLDER, R_OK) < 0)
                SKIP("needs the source folder: tests/data/kubernetes");
        CHECK(is_golden(FLAGS(TEMPLATE_YAML, "kubernetes.image=caisson:2",
                                "kubernetes.key_secret=fleet"),
                "from-file"));
        CHECK(is_golden(FLAGS(TEMPLATE_YAML), "from-file-own-image"));
        CHECK(is_golden(FLAGS(TEMPLATE_JSON), "from-file-again"));
}

static void the_hash_follows_from_each_setting(void)
{
        static const char *const changes[] = { "kubernetes.image=caisson:2", "kubernetes.memory_limit=5Gi",
                "kubernetes.run_as_user=0", "kubernetes.grace=331", "kubernetes.key_secret=a", "kubernetes.selector=a=b" };
        char *usual = hash_of(FLAGS("kubernetes.image=caisson:1", "kubernetes.pool_max=5"));
        char *same = hash_of(FLAGS("kubernetes.image=caisson:1", "kubernetes.pool_max=9"));
        CHECK(usual && strlen(usual) == POOL_HASH_LEN && same && strcmp(usual, same) == 0);
        for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
                char *other = hash_of(FLAGS("kubernetes.image=caisson:1", changes[i]));
                CHECK(other && strcmp(usual, other) != 0);
                free(other);
        }
        free(usual);
        free(same);
}

static void a_pod_has_its_name_and_the_template_has_none(void)
{
        struct csn_error err;
        json_t *template = NULL;
        CHECK(make(FLAGS("kubernetes.image=caisson:1"), &template, &err) == 0);
        json_t *pod = pool_template_pod(template, "w-3");
        const json_t *metadata = json_object_get(pod, "metadata");
        CHECK(strcmp(json_string_value(json_object_get(metadata, "name")), "w-3") == 0);
        CHECK(!json_object_get(json_object_get(template, "metadata"), "name"));
        CHECK(strcmp(pool_template_hash(pod), pool_template_hash(template)) == 0);
        json_decref(pod);
        json_decref(template);
}

static void write_file(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0);
        fd_close(&fd);
}

static void what_cannot_be_a_pod_names_its_setting(void)
{
        static const char *const texts[] = { "", "kind: Deployment\n", "kind: Pod\nspec: {}\n", "kind: Pod\nspec: {containers: []}\n",
                "kind: Pod\nspec: {containers: [a]}\n", "{\"kind\": \"Pod\", ", "a: [\n", "[]", "kind: Pod\nspec: &a {b: *a}\n" };
        static const char *const selectors[] = { "", "a", "a!=b", "a in (b)", "=b", "a=b,!c" };
        char path[] = "/tmp/caisson-template-XXXXXX", flag[100];
        int fd = mkstemp(path);
        fd_close(&fd);
        snprintf(flag, sizeof flag, "kubernetes.template_file=%s", path);
        CHECK(refused(FLAGS("kubernetes.pool_min=1"), "kubernetes.image"));
        CHECK(refused(FLAGS("kubernetes.template_file=/none/pod.yaml"), "/none/pod.yaml"));
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                write_file(path, texts[i]);
                CHECK(refused(FLAGS(flag, "kubernetes.image=a"), "kubernetes.template_file"));
        }
        write_file(path, "kind: Pod\nspec: {containers: [{name: a}]}\n");
        CHECK(refused(FLAGS(flag), "kubernetes.image"));
        for (size_t i = 0; i < ARRAY_LEN(selectors); i++) {
                snprintf(flag, sizeof flag, "kubernetes.selector=%s", selectors[i]);
                CHECK(refused(FLAGS(flag, "kubernetes.image=a"), "kubernetes.selector"));
        }
        unlink(path);
}

int main(int argc, char **argv)
{
        update = argc > 1 && strcmp(argv[1], "--update") == 0;
        RUN(the_built_in_pods_are_the_golden_ones);
        RUN(a_file_is_completed_by_labels_image_and_sizes);
        RUN(the_hash_follows_from_each_setting);
        RUN(a_pod_has_its_name_and_the_template_has_none);
        RUN(what_cannot_be_a_pod_names_its_setting);
        return tap_done();
}
