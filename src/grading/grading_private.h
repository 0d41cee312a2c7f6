/* Shared by the files of src/grading: the state of a grading, its attempts and its cases. */
#ifndef GRADING_GRADING_PRIVATE_H
#define GRADING_GRADING_PRIVATE_H

#include "base/worker.h"
#include "grading/grading.h"

#define CASE_CPU_MS 5000
#define CASE_OUTPUT 2000               /* characters kept of each stream of a case */
#define CASE_TEXT_MAX (8 * KIB)         /* bytes of a text from a sandbox about a case */
#define MESSAGE_PARTS_MAX 5000         /* values and names in a message from a sandbox; signs make up to 1,000 */
#define RESULTS_BYTES_MAX (64 * MIB)   /* bytes of a submission's results before the judge has them */
#define LOST_MAX 100                   /* sandboxes that the cases of one submission may end */
#define BUSY_TRIES 3                   /* tries after failures of the engine */

/* One case and its state. */
struct slot {
        const struct grade_case *given;
        struct case_result *result;
        json_t *document;              /* the runner's result for the judge, or NULL */
        size_t bytes;                  /* about the length of the question to the judge, if there is a document */
        bool settled;                  /* result->status is final */
        bool answered;                 /* the output of such a case has come; a checker may still decide */
        bool forks;                    /* a case with standard input in a shared sandbox, see program_cases.c */
        const char *checker_text;      /* why the checker broke on the output, or NULL; see checker.c */
        const double *checker_points;  /* points of the checker for the output, or NULL */
        const char *reference;         /* the reference's value in canonical form, from the arena; or NULL */
        bool kept_waiting;             /* see struct grading */
};

/* What is known about a fault of the engine that outlasts all tries; see faults.c. */
enum fault { FAULT_NONE, FAULT_CONTROL_DUE, FAULT_SUSPECTED, FAULT_RECURRED };

/* WAITS: another grading runs the same reference. */
enum reference_state { REFERENCE_NEW, REFERENCE_RUNS, REFERENCE_WAITS, REFERENCE_OVER };

enum phase { PHASE_NEW, PHASE_CASES, PHASE_STREAMS, PHASE_TESTS, PHASE_OVER };

/* A grading.  Allocated by grading_new(); texts live in its arena. */
struct grading {
        struct grading *next;
        struct grader *grader;
        /* Begin the next phase (grading.c); called when no attempt and no comparison is pending. */
        void (*go_on)(struct grading *grading);
        struct arena arena;
        struct grade_request request;
        const struct language *language;
        char id[40], owner_key[80];
        struct run_quota quota;
        bool local, cancelled, waits;
        bool no_block;                 /* the completion has no block of code */
        bool kept_waiting;             /* other programs used the CPU during its wall-clock time */
        bool tests_kept_waiting, tests_begun;
        bool loaded;                   /* without cases and test code: the submission was loaded, which is all */
        bool retried;
        bool never_shares;             /* a case ended a sandbox: the cases get processes of their own */
        bool persists;                 /* no repetition of the request repairs the error */
        bool judge_ms_given;
        bool code_judged;              /* a judge has looked for signs in the text of the submission */
        bool has_boundary, has_packages, has_error;
        bool review_begun, reviewing;
        bool freed;                    /* grading_free() was called, and messages are made */
        uint64_t patient_until_us;     /* end of the wait for other gradings, in us, if `waits` */
        const struct grading_events *events;
        void *owner;
        uint64_t created_us;
        enum phase phase;
        struct attempt *attempts;
        unsigned runs, tries, lost;
        int instance;                  /* of enum grade_instance: what the cases had */
        enum fault fault;
        enum reference_state reference_state;
        struct timer later;

        struct slot *slots;
        size_t slots_n;
        double cases_cpu_ms;           /* CPU time of the sandboxes of cases, in ms */
        size_t result_bytes;           /* bytes of all documents in `slots` */
        struct case_result *tests;     /* results of test code */
        size_t tests_n, tests_size;
        struct grade_sign *signs;
        size_t signs_n;
        struct judging *judging;
        uint64_t judge_ms;             /* remaining CPU time for judges, in ms */
        char reference_key[65];        /* of the values that the reference gives; "": not known yet */
        size_t reference_bytes;        /* of all values that came from the reference */
        struct source_check source_check; /* for the review: findings of the policy */
        struct review_query review;
        struct grade_result result;
        size_t messages_n;             /* messages in the making, which refer to the grading */
        struct job report; /* in PHASE_OVER: the helper thread owns all of the above that report() uses */
};

struct grader {
        struct engine *engine;
        const struct settings *settings;
        struct grading *gradings;
        struct judges *judges;
        struct references *references; /* values that are kept, or NULL */
};

/* ---- grading_object.c ---- */

/* End the grading with a status and its reason.  The first call counts. */
void grading_fail(struct grading *grading, int status, const struct failure *error);
void grading_fail_text(struct grading *grading, int status, const char *code, const char *field, const char *text);
/*
 * Retry the phase later after a failure of the engine that was no submission's.  false: BUSY_TRIES are used up, or the
 * grading was cancelled.
 */
bool grading_retry(struct grading *grading, const struct run_result *result);
/*
 * The same after a failure in a run of the submission.  When BUSY_TRIES are used up, a control follows, and one more
 * try of the submission; see faults.c.
 */
bool grading_again(struct grading *grading, const struct run_result *result);
/* Add a sign of tampering; name is the case or test, or NULL. */
void grading_sign(struct grading *grading, const char *sign, const char *detail, const char *name);
/* Add the signs in an array from a runner or the judge; name as above. */
void grading_signs(struct grading *grading, const json_t *signs, const char *name);
/* Copy an object into the grading's arena: the memory of a run ends before the grading. */
void grading_keep(struct grading *grading, const struct object *object, const void *from, void *to);
/* Limits of a case in ms, from the case, the request or the default; the wall-clock limit doubles after a retry. */
uint64_t case_cpu_ms(const struct grading *grading, const struct grade_case *given);
uint64_t case_wall_ms(const struct grading *grading, const struct grade_case *given);
/* The rest of total_cpu_ms for sandboxes of cases, in ms; UINT64_MAX: there is no limit. */
uint64_t cases_cpu_left_ms(const struct grading *grading);
/* The status with this name; -1: unknown name, or NULL. */
int case_status_of(const char *name);
/* A sandbox's text, cut to CASE_TEXT_MAX, from the arena; NULL for NULL. */
char *grading_text(struct grading *grading, const char *text);
/* Copy times, output and line from a runner's message into the result of a case or test. */
void grading_note(struct grading *grading, struct case_result *result, const json_t *message);
/* Set the final status of a case, with a sentence. */
void slot_settle(struct slot *slot, struct arena *arena, int status, const char *fmt, ...) PRINTF_LIKE(4, 5);
/*
 * A message of the grading is made.  After grading_free() the last such call frees the grading; the grader may be gone
 * then.
 */
void grading_put(struct grading *grading, struct workers *workers);
/* The wall-clock limit of the request, in ms, or its default. */
uint64_t load_ms(const struct grading *grading);

/* ---- review.c ---- */

/* Begin the review of the submission.  true: go_on() follows.  false: there is none, or it is over. */
bool grading_review(struct grading *grading);
/* Stop waiting for the review, and free what it had.  Harmless without a review. */
void grading_review_end(struct grading *grading);

/* ---- message.c ---- */

/* A message to a runner, in the making. */
struct message;

/* A case of a message.  Its encoder uses of the grading nothing but the request and the settings. */
struct message_case {
        size_t i;                      /* index of the slot */
        const struct grade_case *given;
        uint64_t cpu_ms, wall_ms;
        json_t *document;              /* of the slot, or NULL */
        const char *reference;         /* of the slot, or NULL */
};

/* A message with the member `op`; takes the reference to the other members. */
struct message *message_new(struct grading *grading, const char *op, json_t *members);
/* The message sets the role of the runner. */
void message_set_role(struct message *message, const char *role);
/* Add a text of bytes that live as long as the grading; bytes that are no UTF-8 are replaced. */
void message_add_text(struct message *message, const char *name, const char *bytes, size_t len);
/* The message has the member `cases`; encode() makes the elements, perhaps in a helper thread. */
void message_set_encoder(struct message *message,
        json_t *(*encode)(const struct grading *grading, const struct message_case *one));
/* Add a case; `bytes` is about the length of its texts.  The message has a reference of its own to the document. */
void message_add_case(struct message *message, const struct message_case *one, size_t bytes);
/*
 * Make the message, and call made() with its frames for run_send_frames(); NULL: the message is longer than
 * CHANNEL_MESSAGE_MAX.  A short message is made at once, before the return of NULL.  Else a helper thread makes the
 * message, and the result can be forgotten until made() was called.  The message frees itself.
 */
struct message *message_make(struct message *message, void (*made)(void *owner, struct send_queue_packet *frames),
        void *owner);
/* made() is not called any more.  NULL is allowed. */
void message_forget(struct message *message);
/* Send a short message to the runner.  The reference becomes the callee's.  Errors: see run_send_message(). */
int message_send_json(struct run *run, json_t *message);

/* ---- attempt.c ---- */

struct attempt;

/* The functions of a kind of attempt. */
struct attempt_kind {
        const char *role;              /* role of the runner, or NULL */
        void (*hello_received)(struct attempt *attempt);
        /* A message for the grading; a message to be forwarded to the other sandbox. */
        void (*said)(struct attempt *attempt, const char *op, json_t *message);
        void (*passed_on)(struct attempt *attempt, const char *message, size_t len);
        /* The first message is too long for the channel. */
        void (*too_long)(struct attempt *attempt);
        /* The runner has its first message; may be NULL. */
        void (*begun)(struct attempt *attempt);
        void (*done)(struct attempt *attempt, const struct run_result *result);
};

/* One run of a grading. */
struct attempt {
        struct attempt *next;
        struct grading *grading;
        const struct attempt_kind *kind;
        struct run *run;
        size_t from, to;                        /* range of slots */
        bool stopped;                           /* a case has failed, and stop_on_fail ends the grading */
        bool shares;                            /* the results to come are of cases in one process */
        bool set_up, ready, ended, missing;     /* states that the runner reported */
        bool broken;                            /* the runner violated the protocol */
        bool late;                              /* loading took longer than load_ms() */
        struct timer clock;
        struct message *begin;                  /* the first message, which is made; or NULL */
        /* Messages of the runner from the first long message on, in the order of their arrival; see attempt.c. */
        struct incoming *incoming;
        const struct run_result *result;        /* the run is over, and messages are not parsed yet; else NULL */
};

/*
 * Create an attempt: with the submission, its files and environment; or with `other`, a different program, without
 * them.  The attempt belongs to the grading until attempt_free().
 */
struct attempt *attempt_new(struct grading *grading, const struct attempt_kind *kind, const struct bytes *other);
/* Set the limits of the run in ms, at most the settings' ceilings; then start the run. */
void attempt_limit(struct attempt *attempt, uint64_t cpu_ms, uint64_t wall_ms);
void attempt_start(struct attempt *attempt);
/* Make and send the first message, "begin", which sets the runner's role. */
void attempt_begin(struct attempt *attempt, struct message *message);
/* End an attempt after a protocol violation. */
void attempt_break(struct attempt *attempt);
void attempt_free(struct attempt *attempt);
/* The status of a case after the end of its process or sandbox; *ret_text is the explanation. */
int attempt_verdict(const struct attempt *attempt, const struct run_result *result, const char **ret_text);
/*
 * Copy the run's output into the grading's result, and the reason why the submission could not be loaded, which applies
 * to all cases.
 */
void attempt_keep_streams(struct attempt *attempt, const struct run_result *result);
/* Whether the run ended during set-up, which belongs to the request and precedes all code of the submission. */
bool attempt_ended_in_setup(const struct attempt *attempt, const struct run_result *result);
/*
 * End the grading after a run that ended before the submission answered, with the cause: set-up, submission or engine.
 */
void attempt_trouble(struct attempt *attempt, const struct run_result *result);
/*
 * Whether other programs used the CPU for a large part of the wall-clock time of a run that was ended at its limit.
 * Time in which a run sleeps, waits or computes does not count.
 */
bool kept_waiting(double waited_ms, uint64_t wall_ms);
/* Whether the status is a failure of the engine, not of the program. */
bool status_is_ours(int status);
/* Whether the status excludes any run of the program, now and later. */
bool status_is_final(int status);

/* ---- reference.c ---- */

/* Get the values of the reference.  true: go_on() follows.  false: there is none, or all values are there. */
bool reference_go_on(struct grading *grading);
/* The grading needs the reference no longer; others may run it. */
void reference_leave(struct grading *grading);
void references_close(struct references *references);

/* ---- prelude.c ---- */

/* The text of the prelude; "" for none, and for other languages than Python. */
const char *prelude_text(const struct grading *grading);
/* Add the prelude and the helpers of the request to the first message of a runner. */
void prelude_add(const struct grading *grading, struct message *message);
/* The image of a request without an image: an image with the modules of its prelude. */
const char *prelude_image(const struct grading *grading);

/* ---- the phases ---- */

/* Load the submission, and look up the function of the request: there are neither cases nor test code. */
void load_go_on(struct grading *grading);
void cases_go_on(struct grading *grading);
/* Cases with standard input and slot.forks. */
void programs_go_on(struct grading *grading);
/* A case in the first message of a runner, and about the length of its texts. */
json_t *function_case_encode(const struct grading *grading, const struct message_case *one);
size_t function_case_bytes(const struct grade_case *given);
void streams_go_on(struct grading *grading);
void tests_go_on(struct grading *grading);

/* ---- stdio_cases.c ---- */

/* The number of bytes of an output for the comparison. */
uint64_t stream_bytes_kept(const struct grade_case *given);
/* Set the texts `output` and `expected` of the result of slot i. */
void stream_show(struct grading *grading, size_t i, const struct bytes *output);
/*
 * Compare the output of slot i, and settle the slot, at once or by a checker program; `total`: bytes that the program
 * wrote, if that is more than output->len.
 */
void stream_settle(struct grading *grading, size_t i, const struct bytes *output, uint64_t total);

/* ---- program_cases.c ---- */

/* Whether a case is Python with standard input and can run in a fork of the runner. */
bool program_can_fork(const struct grading *grading, const struct grade_case *given);
/* The members of such a case in a message to the runner.  The caller's reference. */
json_t *program_encode(const struct grade_case *given);
/* Take a runner's result of slot i.  false: the message is malformed. */
bool program_take(struct grading *grading, size_t i, const json_t *message);

/* ---- judge.c ---- */

/*
 * Compare the results of slots `from` to `to`, excluding `to`, and finalize the slots; grading.go_on() follows from the
 * loop.
 */
void judge_ask(struct grading *grading, size_t from, size_t to);
/* Drop a comparison without grading.go_on(). */
void judge_forget(struct judging *judging);
void judges_close(struct judges *judges);

/* ---- compare_output.c ---- */

/* "" if the output is accepted, else the difference in one sentence.  From the arena, or static. */
const char *compare_output(int checker, double tolerance, const struct bytes *got, const struct bytes *expected,
        struct arena *arena);

/* ---- faults.c ---- */

/* Run an empty program as control; the phase goes on after it. */
void control_go_on(struct grading *grading);

/* ---- checker.c ---- */

/* Check the checker of the request, and `compare` beside it.  Errors: CSN_E_INPUT with a JSON pointer. */
int checker_check(const struct grading *grading, struct csn_error *err);
/* Let the checker of the request decide about an output of a case; the slot is final when no attempt is left. */
void check_by_program(struct grading *grading, size_t i, const struct bytes *output);

/* ---- report.c ---- */

/* Set the fields of grading->result from the cases, tests and signs. */
void report(struct grading *grading);

#endif
