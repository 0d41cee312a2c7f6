/*
 * Hostile YAML as a policy: it is refused with its file and line, or it is a policy that a program can be compared
 * with.  The folder has the policy "base" as well, for files that extend it.
 */
#include "policy/policy.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

static void require(bool condition)
{
        if (!condition)
                abort();
}

static char folder[] = "/tmp/fuzz-rules-XXXXXX";

static void remove_folder(void)
{
        auto_fd tmp = open("/tmp", O_DIRECTORY | O_CLOEXEC);
        io_remove_tree(tmp, folder + strlen("/tmp/"));
}

static const char base[] =
        "policy: base\nallow: [math]\nblock_at: HIGH\nrules:\n"
        "  - { id: one, severity: HIGH, score: 3, message: \"{name}\", import: [os, \"sub*\"], except: [os.path] }\n"
        "  - { id: two, severity: LOW, score: 1, message: \"{pattern}\", string: [\"/etc/.*\"], advice: \"no {last}\" }\n";
static const char program[] =
        "import os.path, subprocess as s\nfrom os import system\nsystem('cat /etc/passwd')\ngetattr(s, 'run')(eval)\n";

static int prepare(void)
{
        char path[100], file[100];
        int fd = memfd_create("policy", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), fd);
        require(fd >= 0 && mkdtemp(folder));
        atexit(remove_folder);
        snprintf(file, sizeof file, "%s/fuzz.yaml", folder);
        require(symlink(path, file) == 0);
        snprintf(file, sizeof file, "%s/base.yaml", folder);
        auto_fd base_fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        require(base_fd >= 0 && io_write_all(base_fd, base, strlen(base)) == 0);
        return fd;
}

/*
 * regcomp(3) unfolds {n,m}, and nested it takes all memory there is.  Policies are the administrator's, who may do
 * that; here it would hide everything else.
 */
static bool unfolds(const uint8_t *bytes, size_t len)
{
        size_t braces = 0;
        for (size_t i = 0; i + 1 < len; i++)
                braces += bytes[i] == '{' && bytes[i + 1] >= '0' && bytes[i + 1] <= '9';
        return braces > 1;
}

static void use(const struct policies *policies)
{
        struct arena arena = { 0 };
        struct check_request request = { 0 };
        struct check_result result;
        SET(&request, check_request, policy, arena_text(&arena, "fuzz"));
        SET(&request, check_request, language, arena_text(&arena, "python"));
        SET(&request, check_request, code,
                ((struct bytes){ arena_copy(&arena, program, strlen(program)), strlen(program) }));
        policy_defaults(&request);
        policy_check(policies, &request, &arena, &result, NULL);
        require(result.verdict == verdict_ALLOW || result.findings_n || HAS(&result, check_result, error));
        json_t *json = model_encode(&object_check_result, &result);
        require(json);
        json_decref(json);
        arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        static int fd = -1;
        const char *const folders[] = { folder };
        struct policies *policies = NULL;
        struct csn_error err = { 0 };
        if (unfolds(bytes, len))
                return 0;
        if (fd < 0)
                fd = prepare();
        require(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0 && io_write_all(fd, bytes, len) == 0);
        if (policies_load(folders, 1, &policies, &err) == 0) {
                use(policies);
                policies_free(policies);
        } else {
                require(err.code == CSN_E_CONFIG && strstr(err.text, "fuzz.yaml"));
        }
        return 0;
}
