/* Bash: it has no values, so the channel carries only where the syntax is wrong. */
#include "lang/lang.h"

const struct language lang_bash = {
        .name = "bash",
        .aliases = (const char *const[]){ "sh", "shell", NULL },
        .title = "Bash",
        .interpreter = "/bin/bash",
        .runner = "bash/run.sh",
        .file = "main.sh",
        .extensions = (const char *const[]){ "sh", "bash", NULL },
        .value = false,
};
