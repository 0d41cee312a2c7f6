/*
 * Preludes: imports that trainers execute before a submission.  A prelude is a text of its own, so the submission keeps
 * its line numbers.  The prelude is executed in the namespace of the submission, and catches the error of a possibly
 * missing module.
 */
#include "grading/grading_private.h"

#define STARS                                                                                                          \
        "from string import *\n"                                                                                       \
        "from re import *\n"                                                                                           \
        "from datetime import *\n"                                                                                     \
        "from collections import *\n"                                                                                  \
        "from heapq import *\n"                                                                                        \
        "from bisect import *\n"                                                                                       \
        "from copy import *\n"                                                                                         \
        "from math import *\n"                                                                                         \
        "from random import *\n"                                                                                       \
        "from statistics import *\n"                                                                                   \
        "from itertools import *\n"                                                                                    \
        "from functools import *\n"                                                                                    \
        "from operator import *\n"                                                                                     \
        "from io import *\n"                                                                                           \
        "from sys import *\n"                                                                                          \
        "from json import *\n"                                                                                         \
        "from typing import *\n"                                                                                       \
        "import string, re, datetime, collections, heapq, bisect, copy, math, random, statistics, itertools\n"         \
        "import functools, operator, io, sys, json, builtins, typing\n"
/* As `from builtins import *`: removes the names in front of builtins. */
#define BUILTINS                                                                                                       \
        "for name in dir(builtins):\n"                                                                                 \
        "    if name[:1] != '_':\n"                                                                                    \
        "        globals().pop(name, None)\n"                                                                          \
        "del name\n"
#define RECURSION "sys.setrecursionlimit(50000)\n"
#define ARRAYS                                                                                                         \
        "try:\n"                                                                                                       \
        "    import numpy\n"                                                                                           \
        "    import numpy as np\n"                                                                                     \
        "except ImportError:\n"                                                                                        \
        "    pass\n"                                                                                                   \
        "try:\n"                                                                                                       \
        "    import pandas\n"                                                                                          \
        "    import pandas as pd\n"                                                                                    \
        "except ImportError:\n"                                                                                        \
        "    pass\n"

static const char *const texts[] = {
        [prelude_NONE] = "",
        [prelude_LCB] = STARS BUILTINS RECURSION,
        [prelude_VERL] = STARS BUILTINS,
        [prelude_RLLM] = STARS BUILTINS ARRAYS RECURSION,
};

const char *prelude_text(const struct grading *grading)
{
        const struct grade_request *request = &grading->request;
        bool is_python = grading->language == &lang_python;
        return is_python && HAS(request, grade_request, prelude) ? texts[request->prelude] : "";
}

void prelude_add(const struct grading *grading, struct message *message)
{
        const struct grade_request *request = &grading->request;
        const char *text = prelude_text(grading);
        if (*text)
                message_add_text(message, "prelude", text, strlen(text));
        if (HAS(request, grade_request, helpers) && request->helpers == grade_helpers_LEETCODE)
                message_add_text(message, "helpers", "leetcode", strlen("leetcode"));
}

const char *prelude_image(const struct grading *grading)
{
        const struct grade_request *request = &grading->request;
        bool wants_arrays = HAS(request, grade_request, prelude) && request->prelude == prelude_RLLM;
        return wants_arrays && grading->language == &lang_python ? "data" : "small";
}
