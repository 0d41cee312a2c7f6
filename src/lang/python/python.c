/* Python: the image's own python3. */
#include "lang/lang.h"

const struct language lang_python = {
        .name = "python",
        .aliases = (const char *const[]){ "py", "python3", NULL },
        .title = "Python",
        .interpreter = "/usr/bin/python3",
        .runner = "python/run.py",
        .file = "main.py",
        .extensions = (const char *const[]){ "py", NULL },
        .value = true,
};
