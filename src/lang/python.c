/* Python: the image's own python3. */
#include "lang/lang.h"

const struct language lang_python = {
        .name = "python",
        .aliases = (const char *const[]){ "py", "python3", NULL },
        .title = "Python",
        .interpreter = "/usr/bin/python3",
        .runner = "python/run.py",
        .zygote = (const char *const[]){ "/usr/bin/python3", LANG_RUNNER_MOUNT "/python/zygote.py", NULL },
        .zygote_env = "LD_PRELOAD=" LANG_RUNNER_MOUNT "/python/_caisson.abi3.so",
        .cold_env = (const char *const[]){ "PYTHON*", "LD_*", "LC_*", "LANG*", "MALLOC_*", "GLIBC_TUNABLES",
                "GCONV_PATH", "HOME", "PATH", NULL },
        .file = "main.py",
        .prelude = "prelude.py",
        .extensions = (const char *const[]){ "py", NULL },
        .value = true,
        .cases = true,
        .context = (const char *const[]){ "/usr/bin/python3", LANG_RUNNER_MOUNT "/python/context.py", "", NULL },
};
