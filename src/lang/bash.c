/* Bash: it has no values, so the channel carries only where the syntax is wrong. */
#include "lang/lang.h"

#include "sandbox/sandbox.h"

/* What Bash reads once, and the names to which it gives a meaning or values of its own. */
static const char *const read_at_start[] = {
        "BASH*", "SHELLOPTS", "POSIX*", "ENV", "_", "PWD", "OLDPWD", "SHLVL", "HOME",
        "LANG", "LANGUAGE", "LC_*", "TEXTDOMAIN*", "TERM", "COLUMNS", "LINES", "INSIDE_EMACS", "EMACS",
        "IFS", "PS4", "OPTIND", "OPTERR", "OPTARG", "REPLY", "MAPFILE", "COPROC", "PIPESTATUS", "FUNCNAME", "DIRSTACK",
        "UID", "EUID", "PPID", "GROUPS", "HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE",
        "SECONDS", "RANDOM", "SRANDOM", "LINENO", "EPOCH*", "COMP_*", "COMPREPLY", "READLINE_*",
        "HIST*", "histchars", "IGNOREEOF", "ignoreeof", "GLOBIGNORE", "EXECIGNORE", "FIGNORE", "CHILD_MAX", "TMOUT",
        "FUNCNEST", "MAIL*", "LD_*", "GLIBC_*", "MALLOC_*", "LOCPATH", "GCONV_PATH", NULL,
};

const struct language lang_bash = {
        .name = "bash",
        .aliases = (const char *const[]){ "sh", "shell", NULL },
        .title = "Bash",
        .interpreter = "/bin/bash",
        .runner = "bash/run.sh",
        .file = "main.sh",
        .prelude = "prelude.sh",
        .extensions = (const char *const[]){ "sh", "bash", NULL },
        .value = false,
        .wait_argv = (const char *const[]){ "/bin/bash", SANDBOX_HOME "/main.sh", NULL },
        .wait_env = (const char *const[]){ "BASH_ENV=" LANG_RUNNER_MOUNT "/bash/worker.sh", NULL },
        .cold_env = read_at_start,
        .starts_fast = true,
        .wait_plain = true,
        .context = (const char *const[]){ "/bin/bash", LANG_RUNNER_MOUNT "/bash/context.sh", "", NULL },
};
