/* JavaScript and TypeScript: the image's own node. */
#include "lang/lang.h"

const struct language lang_javascript = {
        .name = "javascript",
        .aliases = (const char *const[]){ "js", "node", "nodejs", "ecmascript", NULL },
        .title = "JavaScript",
        .interpreter = "/usr/bin/node",
        .runner = "node/run.js",
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
        .file = "main.ts",
        .extensions = (const char *const[]){ "ts", "mts", "cts", NULL },
        .value = true,
};
