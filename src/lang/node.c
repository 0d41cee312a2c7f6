/* JavaScript and TypeScript: the image's own node. */
#include "lang/lang.h"

static const char *const worker[] = { "/usr/bin/node", LANG_RUNNER_MOUNT "/node/run.js", "--wait", NULL };

/* TZ is none of them: Node notices when a program sets it.  SSL_CERT_* and OPENSSL_* OpenSSL may have read. */
static const char *const read_at_start[] = {
        "NODE_*", "UV_*", "V8_*",                               /* node, libuv, V8 */
        "HOME",                                                 /* folders of old that require() looks into */
        "OPENSSL_*", "SSL_*", "SSLKEYLOGFILE",
        "ICU_*", "LANG", "LANGUAGE", "LC_*", "TZDIR",           /* ICU's default locale and data */
        "FORCE_COLOR", "NO_COLOR", "COLORTERM", "TERM",
        "RES_OPTIONS", "LOCALDOMAIN", "HOSTALIASES", "CARES_*", /* resolvers */
        "LD_*", "GLIBC_*", "MALLOC_*", "LOCPATH", "GCONV_PATH", NULL,
};

const struct language lang_javascript = {
        .name = "javascript",
        .aliases = (const char *const[]){ "js", "node", "nodejs", "ecmascript", NULL },
        .title = "JavaScript",
        .interpreter = "/usr/bin/node",
        .runner = "node/run.js",
        .file = "main.js",
        .prelude = "prelude.js",
        .extensions = (const char *const[]){ "js", "mjs", "cjs", NULL },
        .value = true,
        .cases = true,
        .context = (const char *const[]){ "/usr/bin/node", LANG_RUNNER_MOUNT "/node/context.js", "language=javascript,",
                NULL },
        .wait_argv = worker,
        .cold_env = read_at_start,
};

const struct language lang_typescript = {
        .name = "typescript",
        .aliases = (const char *const[]){ "ts", NULL },
        .title = "TypeScript",
        .interpreter = "/usr/bin/node",
        .runner = "node/run.js",
        .file = "main.ts",
        .prelude = "prelude.ts",
        .extensions = (const char *const[]){ "ts", "mts", "cts", NULL },
        .value = true,
        .cases = true,
        .context = (const char *const[]){ "/usr/bin/node", LANG_RUNNER_MOUNT "/node/context.js", "language=typescript,",
                NULL },
        .wait_argv = worker,
        .cold_env = read_at_start,
};
