/*
 * policy: analysis of a program's text before it runs, and the verdict of a source policy on the result.
 *
 *   analysis/tree         a program's parse tree as a flat array
 *   analysis/fast_parser  parser for correct programs: tree-sitter's tables without its runtime
 *   analysis/symbols      numbers for names, and hash tables; for the analyses
 *   analysis/facts        the output of an analysis: a module is imported, os.system is named, a text has these parts …
 *   analysis/unicode      Unicode and encodings
 *   NAME/                 analysis of a language (bash, javascript, python): one folder and a line in analysis/facts.c
 *   rules                 policies: YAML files in policies/ and in the administrator's folder
 *   describe              a policy as JSON, for people
 *   packages              imported modules -> packages to install
 *   match                 facts and a policy -> findings and a verdict
 *   results               the fields common to all results, and the error in a result
 *   worker                a process without files or network, in which all of the above reads untrusted text
 *   checker               the caller's side of the worker
 *
 * A policy is advice at the right time: it refuses early, with a sentence that a model can act on, and gives an auditor
 * the findings.  It is never the boundary.  A program that decides at run time can evade every policy; then the sandbox
 * holds.
 *
 * Facts know no policy and policies know no language: a new policy is a file, and a new evasion is one place in an
 * analysis.
 */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include "model/model.h"

/* ---- policies (rules.c) ---- */

struct policies;

/*
 * Load every NAME.yaml of these folders; of two files with one name the file in the earlier folder counts.  A missing
 * folder counts as empty.  *ret is the caller's until policies_free().  Errors: CSN_E_CONFIG naming file and line.
 */
int policies_load(const char *const *folders, size_t n, struct policies **ret, struct csn_error *err);
void policies_free(struct policies *policies);

/* A policy belongs to its struct policies. */
struct policy;
/* Find a policy by name.  Errors: CSN_E_INPUT, with a text that lists the known names. */
int policies_find(const struct policies *policies, const char *name, const struct policy **ret, struct csn_error *err);

/* The n-th policy name that a request may use, NULL after the last (describe.c). */
const char *policies_name(const struct policies *policies, size_t n);
/*
 * A policy as JSON: {name, description, file, block_at, block_score, extends: [the nearest first], allow, rules: [{id,
 * severity, score, inherited, message, advice, languages, finds: {fact: patterns}, except}]}.  The caller owns the
 * reference.
 */
json_t *policy_describe(const struct policy *policy);

/*
 * Set the defaults of fields that a request leaves out, except the severity that is refused: each policy has its own.
 */
void policy_defaults(struct check_request *request);

/* ---- packages (packages.c) ---- */

/*
 * The package that provides a module, by its name for installation: opencv-python for cv2.  NULL: none is needed,
 * because the module belongs to the language or is a file of the program.  From the arena, or static.
 */
const char *package_of(const char *language, const char *module, struct arena *arena);

/*
 * The same, for installing without a question: *ret_known is false if no table has the module of Python, and the result
 * is then a guess.  A guess must not be installed: a name that a model made up may be an attacker's package.
 */
const char *package_known(const char *language, const char *module, struct arena *arena, bool *ret_known);

/* ---- one check, inside the worker (match.c) ---- */

/*
 * Analyse a program and judge the facts by a policy.  Everything in *ret lives in the arena.  A program that cannot be
 * analysed is denied, with ret->error, which is an answer and no error.  This function parses untrusted text in the
 * calling process: see the checker.
 *
 * *ret_doubtful, which may be NULL: only the interpreter can tell whether the program has a syntax error.
 */
void policy_check(const struct policies *policies, const struct check_request *request, struct arena *arena,
        struct check_result *ret, bool *ret_doubtful);

/* ---- results (results.c) ---- */

/* Set the fields that a result repeats from its request.  Everything in *ret lives in the arena. */
void policy_result(const struct check_request *request, struct arena *arena, struct check_result *ret);
/* Set a result for a program that was not analysed: denied, with this error. */
void policy_refuse(const struct check_request *request, const struct csn_error *err, struct arena *arena,
        struct check_result *ret);

/*
 * The error of a result without a verdict on the program (a wrong request, or no worker): fills *ret and returns
 * -ret->code.  0: the result judges the program; for a program too long or too complex the result's error has the field
 * "/code".
 */
int policy_trouble(const struct check_result *result, struct csn_error *ret);

/* ---- the worker (worker.c) ---- */

#define WORKER_SOCKET_FD 3
/* Flags in an answer's length: the worker exits after this answer; the program is doubtful. */
#define WORKER_LAST 0x80000000U
#define WORKER_DOUBTFUL 0x40000000U

/* Precedes each request: the lengths of its JSON, whose code is empty, and of the code, which follows unchanged. */
struct worker_head {
        uint32_t json, code;
};

/* The account that the worker changes to before it reads a request; (uid_t)-1: no change. */
struct worker_user {
        uid_t uid;
        gid_t gid;
};

/*
 * main() of caisson-policy: loads the policies of `folders`, gives up all rights, and answers requests on
 * WORKER_SOCKET_FD until the socket closes.  A request is a worker_head with its two texts; an answer is a length in
 * four bytes and a check_result as JSON.  Returns the exit status.
 */
int worker_main(const struct worker_user *user, const char *const *folders, size_t n);

/* ---- the checker (checker.c) ---- */

struct checker;

struct checker_paths {
        const char *worker;            /* the program caisson-policy */
        const char *folders[2];        /* folders of policies; NULL: none */
        /*
         * Start the worker with this end of its socket, which stays the caller's.  NULL: the checker forks the worker
         * itself.  Errors: CSN_E_SYSTEM.
         */
        int (*start)(int sock, pid_t *ret_pid, struct csn_error *err);
        uint64_t wall_ms;              /* replaces CHECK_WALL_MS unless 0 */
};

/*
 * Limits of one check, in ms: CPU time of the worker, and wall-clock time for a worker that does nothing.  At either
 * limit the worker is killed and the program denied.  Wall-clock time alone would refuse good programs on a busy
 * machine.
 */
#define CHECK_TIME_MS 2000
#define CHECK_WALL_MS 30000
#define CHECK_CODE_MAX MIB             /* bytes of a program; a longer program is denied */

/*
 * A pending check.  Embedded in the caller's object; all zeros means none.  The caller fills request, done, owner and
 * key.
 */
struct check {
        struct check_request request;
        struct check_result result;    /* valid from done() on; lives in `arena` until check_done() */
        struct arena arena;
        void (*done)(struct check *check);
        void *owner;
        const char *key; /* requester, or NULL; after a check for one key, checks for other keys take precedence */
        struct check *next;
        bool active;
        bool doubtful;                 /* valid from done() on; see policy_check() */
};

/* Create a checker.  The worker starts with the first check, and again after its death.  Never fails. */
void checker_open(struct loop *loop, const struct checker_paths *paths, struct checker **ret);
void checker_close(struct checker *checker);   /* pending checks are dropped without done() */
/* Policies have changed: later checks use those of these folders. */
void checker_reload(struct checker *checker, const struct checker_paths *paths);
/* Queue a check.  done() is called later, from the loop, in every case: a failure is an answer. */
void checker_start(struct checker *checker, struct check *check);
/* Drop a check without done(). */
void checker_cancel(struct checker *checker, struct check *check);
/* Free the memory of a check and its result. */
void check_done(struct check *check);

#endif
