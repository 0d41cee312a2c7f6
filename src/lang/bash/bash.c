/* Bash: it has no values, so the channel carries only where the syntax is wrong. */
#include "lang/lang.h"

const struct language lang_bash = {
        .name = "bash",
        .aliases = (const char *const[]){ "sh", "shell", NULL },
        .title = "Bash",
        .interpreter = "/bin/bash",
        .runner = "bash/run.sh",
        .wait_argv = (const char *const[]){ "/bin/bash", "--", "/home/user/main.sh", NULL },
        .wait_env = (const char *const[]){ "BASH_ENV=" LANG_RUNNER_MOUNT "/bash/wait.sh", NULL },
        .wait_plain = true,
        .cold_env = (const char *const[]){ "BASH*", "SHELLOPTS", "POSIXLY_CORRECT", "LC_*", "LANG*", "LD_*", "ENV", "IFS", "HOME", "PATH", "HIST*",
                                           "TMOUT", "MALLOC_*", "GLIBC_TUNABLES", NULL },
        .file = "main.sh",
        .extensions = (const char *const[]){ "sh", "bash", NULL },
        .value = false,
};
