/* A grading from the inside; for the files of this folder. */
#ifndef GRADING_PARTS_H
#define GRADING_PARTS_H

#include "grading/grading.h"

#define CASE_CPU_MS 5000
#define CASE_OUTPUT 2000               /* characters of each stream that a case keeps */
#define CASE_TEXT_MAX (8 * KIB)         /* bytes of any text that a sandbox says of a case */
#define MESSAGE_PARTS_MAX 500000       /* values and names in what a sandbox says */
#define RESULTS_BYTES_MAX (64 * MIB)   /* of a submission, that wait for the judge */
#define LOST_MAX 100                   /* sandboxes that cases of one submission may end */
#define BUSY_TRIES 3                   /* for what the engine is to blame */

/* What is known of a case. */
struct slot {
        const struct grade_case *given;
        struct case_result *result;
        json_t *document;              /* what its runner said of it, for the judge; or NULL */
        bool settled;                  /* result has its status */
        bool kept_waiting;             /* as that of the grading */
};

enum phase { PHASE_NEW, PHASE_CASES, PHASE_STREAMS, PHASE_TESTS, PHASE_OVER };

struct grading {
        struct grading *next;
        struct grader *grader;
        struct arena arena;
        struct grade_request request;
        const struct language *language;
        char id[40], owner_key[80];
        size_t running_max, queued_max;
        bool local, cancelled, waits;
        bool kept_waiting;             /* other programs had the CPU while its wall-clock time passed */
        bool tests_kept_waiting, tests_begun;
        bool retried;
        uint64_t patient_until_us;     /* of one that `waits` for others to end */
        const struct grading_events *events;
        void *owner;
        uint64_t created_us;
        enum phase phase;
        struct attempt *attempts;
        unsigned runs, tries;
        struct timer later;

        struct slot *slots;
        size_t slots_n;
        size_t result_bytes;           /* of all documents in them */
        unsigned lost;
        struct case_result *tests;     /* of test code */
        size_t tests_n, tests_size;
        struct grade_sign *signs;
        size_t signs_n;
        struct judging *judging;
        uint64_t judge_ms;             /* CPU time of judges that is left to it */
        bool judge_ms_given;
        bool has_boundary, has_error;
        struct grade_result result;
};

struct grader {
        struct engine *engine;
        const struct settings *settings;
        struct grading *gradings;
        struct judges *judges;
};

/* ---- grading.c ---- */

/* No attempt and no judging goes on: what is next. */
void grading_go_on(struct grading *grading);
/* Nothing more can be found out: the status, and why.  The first one counts. */
void grading_fail(struct grading *grading, int status, const struct failure *error);
void grading_fail_text(struct grading *grading, int status, const char *code, const char *field, const char *text);
/* The engine is to blame: later again, if it has not been too often.  False: it has. */
bool grading_again(struct grading *grading);
void grading_sign(struct grading *grading, const char *sign, const char *detail, const char *name);
/* Signs as runners and the judge tell them, an array; of a case, or NULL. */
void grading_signs(struct grading *grading, const json_t *signs, const char *name);
/* A copy that lives as long as the grading: what a run has goes with it. */
void grading_keep(struct grading *grading, const struct object *object, const void *from, void *to);
uint64_t case_cpu_ms(const struct grading *grading, const struct grade_case *given);
uint64_t case_wall_ms(const struct grading *grading, const struct grade_case *given);
/* By its name; -1: there is none, or NULL. */
int case_status_of(const char *name);
/* What a sandbox says, cut where it is too long; NULL for nothing.  From the arena. */
char *grading_text(struct grading *grading, const char *text);
/* Times, output and line, as a runner tells them of a case or test. */
void grading_note(struct grading *grading, struct case_result *result, const json_t *message);
void slot_settle(struct slot *slot, struct arena *arena, int status, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* What of the submission's time limit of `limits` is in force. */
uint64_t load_ms(const struct grading *grading);

/* ---- attempt.c ---- */

struct attempt;

struct attempt_kind {
        const char *role;              /* of the runner, or NULL */
        void (*hello_received)(struct attempt *attempt);
        /* What it says to us; and what is for the other one of two. */
        void (*said)(struct attempt *attempt, const char *op, json_t *message);
        void (*passed_on)(struct attempt *attempt, const char *message, size_t len);
        void (*done)(struct attempt *attempt, const struct run_result *result);
};

struct attempt {
        struct attempt *next;
        struct grading *grading;
        const struct attempt_kind *kind;
        struct run *run;
        size_t from, to;               /* slots that it is for */
        bool set_up, ready, ended, missing;   /* what it said */
        bool broken;                   /* it said what it may not */
        bool late;                     /* it did not load in time */
        struct timer clock;
};

/* With the submission, its files and its environment, or with another program, and without them. */
struct attempt *attempt_new(struct grading *grading, const struct attempt_kind *kind, const struct bytes *other);
void attempt_limit(struct attempt *attempt, uint64_t cpu_ms, uint64_t wall_ms);
void attempt_start(struct attempt *attempt);
/* A message for the runner; takes the reference. */
int message_send_json(struct run *run, json_t *message);
/* The first one, which says what it is to be. */
int message_begin_role(struct run *run, const char *role, json_t *message);
void attempt_break(struct attempt *attempt);
void attempt_free(struct attempt *attempt);
/* The status of a case whose process, and sandbox, ended like that; and what to say of it. */
int attempt_verdict(const struct attempt *attempt, const struct run_result *result, const char **ret_text);
/* What it wrote is the grading's; and what hindered it from being loaded, which is in the way of all cases. */
void attempt_keep_streams(struct attempt *attempt, const struct run_result *result);
/* Whether it ended in the set-up, which is the request's and comes before anything of the submission. */
bool attempt_ended_in_setup(const struct attempt *attempt, const struct run_result *result);
void attempt_trouble(struct attempt *attempt, const struct run_result *result);
/*
 * Whether other programs had the CPU for much of the wall-clock time after which a run was ended.  A run that sleeps, waits or
 * computes was not kept waiting.
 */
bool kept_waiting(double waited_ms, uint64_t wall_ms);
/* Whether the engine is to blame, and not the program. */
bool status_is_ours(int status);
/* Whether nothing of the program has run, nor will. */
bool status_is_final(int status);

/* ---- the phases ---- */

void cases_go_on(struct grading *grading);
void streams_go_on(struct grading *grading);
void tests_go_on(struct grading *grading);

/* ---- judge.c ---- */

/*
 * Compare what slots from `from` up to `to` have a document of, and settle them; grading_go_on() follows, from the loop.
 */
void judge_ask(struct grading *grading, size_t from, size_t to);
void judge_forget(struct judging *judging);
void judges_close(struct judges *judges);

/* ---- compare_output.c ---- */

/* "" if it is accepted, else what is wrong, in one sentence. */
const char *compare_output(int checker, double tolerance, const struct bytes *got, const struct bytes *expected, struct arena *arena);

/* ---- report.c ---- */

void report(struct grading *grading);

#endif
