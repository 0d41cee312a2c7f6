/*
 * policy: what a program's text tells about what it will do, and what a policy says to that.
 *
 *   tree      a program's parse tree as a flat array
 *   quick     how most of them are made: tree-sitter's tables without its runtime
 *   names     numbers for names, and tables; for analyses
 *   facts     what analyses say: a module is imported, os.system is named, a text is made of these parts …
 *   python    the analysis of Python; a language is one such folder's worth of files and a line in policy/analysis/facts.c
 *   words     Unicode, and encodings
 *   rules     policies: files that people read, in policies/, and in the administrator's folder
 *   describe  a policy as JSON, for people
 *   packages  modules that are imported -> packages that have to be there
 *   match     facts and a policy -> findings and a verdict
 *   result    what of a result is the same for all, and the trouble in it
 *   worker    a process without files or network in which all of the above meets foreign text
 *   checker   the caller's side of it
 *
 * A policy is good advice at the right time: it refuses early, with a sentence that a model can act on, and tells
 * an auditor what was seen.  It is never the boundary.  Any of them can be got round by a program that decides at
 * run time what it does, and then the sandbox is what holds.
 *
 * Facts know no policy and policies know no language, so a new policy is a file and a new evasion is one place in
 * an analysis.
 */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include "model/model.h"

/* ---- policies (rules.c) ---- */

struct policies;

/*
 * Every NAME.yaml of these folders; where two have one name the first folder's counts.  A folder that is not there
 * is an empty one.  Errors: CSN_E_CONFIG naming file and line.
 */
int policies_load(const char *const *folders, size_t n, struct policies **ret, struct csn_error *err);
void policies_free(struct policies *policies);

struct policy;
/* Errors: CSN_E_INPUT, whose text lists the known ones. */
int policies_find(const struct policies *policies, const char *name, const struct policy **ret, struct csn_error *err);

/* The n-th name that a request may have, NULL after the last (describe.c). */
const char *policies_name(const struct policies *policies, size_t n);
/*
 * {name, description, file, block_at, block_score, extends: [the nearest first], allow, rules: [{id, severity, score,
 * inherited, message, advice, languages, finds: {fact: patterns}, except}]}.  The caller's reference.
 */
json_t *policy_describe(const struct policy *policy);

/* What a request does not say; the severity that is refused stays open, because each policy has its own. */
void policy_defaults(struct check_request *request);

/* ---- packages (packages.c) ---- */

/*
 * The package that has a module, by the name under which it is installed: opencv-python for cv2.  NULL: it needs none,
 * for it belongs to the language or is a file of the program's own.  From the arena, or constant.
 */
const char *package_of(const char *language, const char *module, struct arena *arena);

/* ---- one check, where it is safe to do it (match.c) ---- */

/*
 * Everything in *ret lives in the arena.  A program that cannot be analysed is denied, with ret->error; that is an
 * answer and no error.  This parses foreign text in the process that calls it: see the checker.
 *
 * *ret_doubtful, which may be NULL: there is something in it that the interpreter may refuse, and only it can say.
 */
void policy_check(const struct policies *policies, const struct check_request *request, struct arena *arena, struct check_result *ret,
                  bool *ret_doubtful);

/* ---- results (results.c) ---- */

/* What a result repeats of its request; everything in *ret lives in the arena. */
void policy_result(const struct check_request *request, struct arena *arena, struct check_result *ret);
/* Denied without having been looked at. */
void policy_refuse(const struct check_request *request, const struct csn_error *err, struct arena *arena, struct check_result *ret);

/*
 * A result that says nothing of the program, because the request was wrong or nobody could look: its error in *ret,
 * and -ret->code.  0: it does; where the program is too long or too complex the error's field is "/code".
 */
int policy_trouble(const struct check_result *result, struct csn_error *ret);

/* ---- the worker (worker.c) ---- */

#define WORKER_SOCKET_FD 3
/* Beside the length of an answer: the worker ends after it; the program is doubtful. */
#define WORKER_LAST 0x80000000U
#define WORKER_DOUBTFUL 0x40000000U

/* Before each request: the lengths of its JSON, in which the code is empty, and of the code, which follows as it is. */
struct worker_head {
        uint32_t json, code;
};

/* Who it becomes before it reads a request; (uid_t)-1: who it is. */
struct worker_user {
        uid_t uid;
        gid_t gid;
};

/*
 * The whole of the program caisson-policy: loads the policies of `folders`, gives up every right, and answers requests
 * on WORKER_SOCKET_FD until it is closed.  A request is a worker_head and what it announces, an answer is its length
 * in four bytes and a check_result as JSON.  Returns the exit status.
 */
int worker_main(const struct worker_user *user, const char *const *folders, size_t n);

/* ---- the checker (checker.c) ---- */

struct checker;

struct checker_paths {
        const char *worker;            /* the program caisson-policy */
        const char *folders[2];        /* of policies; NULL: none */
        /* Starts the worker with its socket in our place, or NULL. */
        int (*start)(int sock, pid_t *ret_pid, struct csn_error *err);
        uint64_t wall_ms;              /* instead of CHECK_WALL_MS; 0: that */
};

/*
 * Of the worker's work for one program, and of the time that may pass, which is for a worker that does nothing.  After
 * either the worker is killed, and the program denied.  Time alone would refuse good programs on a busy machine.
 */
#define CHECK_TIME_MS 2000
#define CHECK_WALL_MS 30000
#define CHECK_CODE_MAX MIB             /* bytes of a program; a longer one is denied */

/* A check that goes on.  Embedded in its owner; all zeros is none. */
struct check {
        struct check_request request;
        struct check_result result;    /* once it is done; lives in `arena` until check_done() */
        struct arena arena;
        void (*done)(struct check *check);
        void *owner;
        const char *key;               /* for whom, or NULL: after a check of one key those of others come first */
        struct check *next;
        bool active;
        bool doubtful;                 /* once it is done: see policy_check() */
};

/* The worker is started when it is needed first, and again when it died. */
void checker_open(struct loop *loop, const struct checker_paths *paths, struct checker **ret);
void checker_close(struct checker *checker);   /* checks that go on are forgotten */
/* Policies have changed: what is checked from now on is compared with those of these folders. */
void checker_reload(struct checker *checker, const struct checker_paths *paths);
/* `done` is called later, from the loop, and always: whatever goes wrong is an answer. */
void checker_start(struct checker *checker, struct check *check);
void checker_cancel(struct checker *checker, struct check *check);
void check_done(struct check *check);

#endif
