/* JavaScript and TypeScript: the image's own node. */
#include "lang/lang.h"

static const char *const wait_argv[] = { "/usr/bin/node", LANG_RUNNER_MOUNT "/node/run.js", "--wait", NULL };
/* What node, V8, libuv, OpenSSL, ICU and the C library read once. */
static const char *const cold_env[] = { "NODE_*", "UV_*", "LD_*", "LC_*", "LANG*", "SSL_CERT*", "OPENSSL*", "ICU_*", "MALLOC_*", "GLIBC_TUNABLES",
                                        "FORCE_COLOR", "NO_COLOR", "HOME", "PATH", NULL };

const struct language lang_javascript = {
        .name = "javascript",
        .aliases = (const char *const[]){ "js", "node", "nodejs", "ecmascript", NULL },
        .title = "JavaScript",
        .interpreter = "/usr/bin/node",
        .runner = "node/run.js",
        .wait_argv = wait_argv,
        .cold_env = cold_env,
        .file = "main.js",
        .extensions = (const char *const[]){ "js", "mjs", "cjs", NULL },
        .value = true,
};

const struct language lang_typescript = {
        .name = "typescript",
        .aliases = (const char *const[]){ "ts", NULL },
        .title = "TypeScript",
        .interpreter = "/usr/bin/node",
        .runner = "node/run.js",
        .wait_argv = wait_argv,
        .cold_env = cold_env,
        .file = "main.ts",
        .extensions = (const char *const[]){ "ts", "mts", "cts", NULL },
        .value = true,
};
