/*
 * base: the foundation of all other folders; depends on libc only.
 *
 * Errors as values, memory with an owner, buffers with a ceiling, descriptors closed by scope, an event loop,
 * parsers for sizes and durations, a log of JSON lines.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <caisson/error.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define KIB 1024ULL
#define MIB (1024ULL * 1024)
#define GIB (1024ULL * 1024 * 1024)

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ---- errors (error.c) ---- */

/*
 * Fill `err` and return -code.  `sys` is an errno or 0; the text of a non-zero errno is appended (": No such file
 * or directory").  `err` may be NULL.  A text longer than the struct is truncated.
 */
int err_set(struct csn_error *err, int code, int sys, const char *fmt, ...) PRINTF_LIKE(4, 5);

/*
 * Call after a failed step that a kernel, a container or a service can forbid: for an errno of this kind
 * CSN_E_SYSTEM becomes CSN_E_UNSUPPORTED.  Returns -err->code.
 */
int err_refused(struct csn_error *err);

/* err_set() with CSN_E_SYSTEM, or with CSN_E_BUSY for a full disk or a used-up quota of the disk. */
int err_storage(struct csn_error *err, int sys, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* err_set() with CSN_E_INPUT and the name of the wrong field. */
int err_field(struct csn_error *err, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* err_set() with CSN_E_CONFIG; the field is the key of the wrong setting, or the text read as a key. */
int err_setting(struct csn_error *err, const char *key, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Add the caller's context before the text: "FMT: old text".  Returns -err->code. */
int err_wrap(struct csn_error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Whether execve(2) failed with `sys` because of the file itself: missing, or not executable on this host. */
bool err_is_no_program(int sys);

/*
 * Error for an interpreter refused by execve(2), from errno: CSN_E_LANGUAGE if err_is_no_program(), else
 * CSN_E_UNSUPPORTED.
 */
int err_interpreter(struct csn_error *err, const char *path);

/* The code with this name (csn_code_name); 0: unknown name. */
int err_code_of(const char *name);

/* ---- descriptors (io.c) ---- */

/* Close *fd unless negative, and set *fd to -1.  errno is preserved. */
void fd_close(int *fd);

#define auto_fd __attribute__((cleanup(fd_close))) int

/* Transfer ownership: returns *fd and sets *fd to -1, so that auto_fd does not close the descriptor. */
static inline int take_fd(int *fd)
{
        int taken = *fd;
        *fd = -1;
        return taken;
}

/* Write all bytes, continuing after EINTR and short writes.  0, or -1 with errno. */
int io_write_all(int fd, const void *bytes, size_t len);

/*
 * Read a whole file of at most `max` bytes into `buf`, plus a NUL (`buf` has max + 1 bytes).  Returns the number
 * of bytes, or -1 with errno; EFBIG: the file is larger.
 */
ssize_t io_read_file(int dir_fd, const char *path, char *buf, size_t max);

/* Make a folder and its missing parents with mode 0700.  0, or -1 with errno. */
int io_make_folders(const char *path);

/* Write a text to an existing file in a single write(2), as kernel files require.  0, or -1 with errno. */
int io_write_file(int dir_fd, const char *path, const char *text);

/* A sealed, read-only memfd with these bytes, at offset 0; owned by the caller.  -1 with errno. */
int io_memfd(const char *name, const void *bytes, size_t len);
/* Seal a memfd made with MFD_ALLOW_SEALING, and set its offset to 0.  0, or -1 with errno. */
int io_seal(int fd);
/* Block these signals and return a non-blocking signalfd(2) for them, owned by the caller.  Errors: CSN_E_SYSTEM. */
int io_signals(const int *numbers, size_t n, struct csn_error *err);
/* SIGINT, SIGTERM and SIGHUP: requests to end a program. */
#define IO_ENDS 3
extern const int io_ends[IO_ENDS];

/* Remove a folder and all content, at any depth, without following links (remove_tree.c). */
void io_remove_tree(int parent_fd, const char *name);

/* ---- memory (mem.c) ---- */

/*
 * Out of memory ends the process, with a line of text.  Every size from outside is checked before an allocation,
 * so out of memory means a failing host and not a hostile request.
 */
void *mem_alloc(size_t size);                    /* zeroed; the caller calls free() */
void *mem_resize(void *old, size_t size);        /* not zeroed */
char *mem_copy(const char *text, size_t len);    /* len bytes and a NUL; the caller calls free() */

/* An arena: many small allocations with a common owner and a common end.  All zeros: an empty arena. */
struct arena {
        struct arena_block *blocks;
};

void *arena_alloc(struct arena *arena, size_t size);                   /* zeroed, aligned for any type */
char *arena_copy(struct arena *arena, const char *text, size_t len);   /* len bytes and a NUL */
char *arena_text(struct arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3);
void arena_join(struct arena *arena, struct arena *other);             /* take over all memory of the other arena */
void arena_done(struct arena *arena);                                  /* free all; the arena is empty again */
bool arena_is_large(const struct arena *arena, size_t size);           /* whether the arena has at least that size */

/* ---- buffers (buf.c) ---- */

/* Bytes with a ceiling.  Initialize with buf_init(&b, ceiling); all zeros: empty with ceiling 0. */
struct buf {
        char *bytes;     /* NUL-terminated after the first append */
        size_t len;
        size_t size;
        size_t max;
};

void buf_init(struct buf *buf, size_t max);
void buf_done(struct buf *buf);
bool buf_add(struct buf *buf, const void *bytes, size_t len);   /* false, and unchanged, above the ceiling */
/*
 * Make room for `len` bytes altogether, at most the ceiling: appending does not copy then.  Unwritten pages take no
 * memory.
 */
void buf_reserve(struct buf *buf, size_t len);
/* Append len bytes for the caller to fill in.  NULL, and unchanged, above the ceiling. */
char *buf_extend(struct buf *buf, size_t len);
/* Give back much unused memory. */
void buf_trim(struct buf *buf);
bool buf_printf(struct buf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * Head and tail of a stream of any length, in constant memory.  At most `max` bytes are kept: the first half is
 * the stream's head, the second half a ring buffer of the newest bytes.
 */
struct capture {
        char *bytes;     /* head, then ring; at most max in use */
        size_t size;
        size_t max;
        size_t head;     /* used bytes of the head, at most max / 2 rounded up */
        size_t ring_at;  /* offset of the oldest byte in the ring */
        size_t ring;     /* used bytes of the ring */
        uint64_t total;  /* length of the whole stream */
};

void capture_init(struct capture *cap, size_t max);
void capture_done(struct capture *cap);
void capture_add(struct capture *cap, const void *bytes, size_t len);
/* Free the bytes; the length of the stream stays known. */
void capture_drop(struct capture *cap);
/* Head and tail as a new string of *ret_len bytes in `arena`; *ret_cut is the offset of the gap. */
char *capture_text(const struct capture *cap, struct arena *arena, size_t *ret_len, size_t *ret_cut);

/* ---- clocks, sizes and durations (units.c) ---- */

uint64_t clock_ms(void);   /* CLOCK_MONOTONIC in milliseconds */
uint64_t clock_us(void);   /* CLOCK_MONOTONIC in microseconds */
/* The next number of a series, at least clock_us(): numbers rise, and do not tell how many there were. */
uint64_t clock_number(uint64_t *newest);
/* CPU time of this process in microseconds; independent of the load by other processes. */
uint64_t clock_work_us(void);

/* Milliseconds since 1970 (UTC); time_print() writes RFC 3339: "2026-11-21T10:00:00.000Z". */
int64_t time_now_ms(void);
void time_print(int64_t ms, char *text, size_t size);

/*
 * "512MiB", "100M", "64k", "1.5GiB", "1000": bytes.  IEC suffixes (KiB, Ki) are powers of 1024, SI suffixes (k,
 * kB, M, MB) powers of 1000, as in Kubernetes.  False: no size.
 */
bool size_parse(const char *text, uint64_t *ret_bytes);

/* "30s", "500ms", "2min", "1.5h", "30d", "30" (seconds): milliseconds.  False: no duration. */
bool duration_parse(const char *text, uint64_t *ret_ms);

/* "1", "0.5", "500m" (Kubernetes' millicores): thousandths of a core.  False: no number of cores. */
bool cores_parse(const char *text, uint64_t *ret_milli);

/*
 * "0.25", "3", "2.5e-07": a decimal number, as an integer of its 10^places; further digits are rounded.  False: no such
 * number, or more than 64 bits.
 */
bool decimal_parse(const char *text, unsigned places, uint64_t *ret);

/* The shortest exact text accepted by the parsers: "512MiB", "30s", "1.5". */
void size_print(uint64_t bytes, char *text, size_t size);
void duration_print(uint64_t ms, char *text, size_t size);
void cores_print(uint64_t milli, char *text, size_t size);

/* ---- hexadecimal digits, random ids, hashes (hex.c, ids.c) ---- */

/* Lower case, two digits a byte, and a NUL: `text` has 2 * len + 1 bytes. */
void hex_print(const void *bytes, size_t len, char *text);

/*
 * A random id: `len` random bytes (at most HEX_RANDOM_MAX), never all zeros, printed by hex_print().  Waits until
 * the kernel's generator is seeded; from then on so few bytes are never truncated (getrandom(2)).
 */
#define HEX_RANDOM_MAX 32
void hex_random(size_t len, char *text);
/*
 * hex_random() for names without secrets, from a batch of random bytes for each thread: without a system call for
 * each id.
 */
void hex_id(size_t len, char *text);

/*
 * The form of the ids of objects of clients: runs, sandboxes, files.  A worker of a gateway makes ids that begin
 * with its tag and end with a seal; without a form all digits are random.
 */
struct id_form {
        char tag[9];               /* 8 hexadecimal digits */
        /* Fill in 8 bytes from the digits before the seal and on a secret. */
        void (*seal)(const void *owner, const char *digits, size_t len, uint8_t ret[8]);
        const void *owner;
};
/* Set the form of all later ids; the form must outlive them.  NULL: random ids. */
void id_set_form(const struct id_form *form);
/* 32 hexadecimal digits: 8 of the tag, 16 random digits, 8 of the seal. */
#define ID_DIGITS 32
void id_new(char text[static ID_DIGITS + 1]);
/* 20 digits and lower-case letters: 7 of the tag, 9 random characters, 4 of the seal. */
#define ID_SHORT_DIGITS 20
void id_new_short(char text[static ID_SHORT_DIGITS + 1]);
/* An id of id_new() as a version 4 UUID (RFC 9562, 5.4), with two random digits less. */
#define ID_UUID_LEN 36
void id_new_uuid(char text[static ID_UUID_LEN + 1]);
/*
 * An id of id_new() with two zero bits at its end: 126 bits, which are 21 characters of base64url (RFC 4648).
 * These characters are never an "i" with 20 characters of id_new_short(), which E2B's ids are.
 */
#define ID_COMPACT_LEN 21
void id_new_compact(char text[static ID_DIGITS + 1]);
/* The 21 characters of an id of id_new_compact(). */
void id_to_compact(const char digits[static ID_DIGITS], char ret[static ID_COMPACT_LEN + 1]);
/* The digits again.  false: the text has another length or other characters. */
bool id_from_compact(const char *text, size_t len, char ret[static ID_DIGITS + 1]);
/* The tag of a short id as hexadecimal digits.  false: the first 7 characters are no tag. */
bool id_short_tag(const char *text, char ret_tag[static 9]);
/* The seal's digits of an id of either length (ID_DIGITS, ID_SHORT_DIGITS), by the form's bytes. */
void id_print_seal(const uint8_t seal[8], size_t id_len, char text[static 9]);

/* A hash of a text for tables (FNV-1a); clients may choose texts with the same hash. */
uint64_t hash_text(const char *text, size_t len);

/* ---- UTF-8 (utf8.c) ---- */

/* Length of the valid UTF-8 sequence at the front of the bytes; 0: none (RFC 3629). */
size_t utf8_step(const char *bytes, size_t len);
bool utf8_valid(const char *bytes, size_t len);
/* Length of the longest prefix without an incomplete character at its end; invalid bytes count as complete. */
size_t utf8_whole(const char *bytes, size_t len);

/* ---- log (log.c) ---- */

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

enum log_format { LOG_FORMAT_JSON, LOG_FORMAT_TEXT };

/* Subject of a line; NULL and "" are omitted. */
struct log_context {
        const char *request, *trace, *run, *owner;
};

/*
 * Write a line to stderr: a JSON object {"time":…,"level":…,"text":…} with the known members of request_id,
 * trace_id, run_id and owner; or the same as plain text.  Lines above the current level (initially LOG_WARN) are
 * dropped.  Callers never pass code, output or secrets.
 */
const char *log_level_name(size_t level);   /* "error" and so on; NULL after the last */
void log_set_level(enum log_level level);
void log_set_format(enum log_format format);
void log_text(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);
void log_about(enum log_level level, const struct log_context *context, const char *fmt, ...) PRINTF_LIKE(3, 4);

/*
 * Also write lines to a file (mode 0600), as JSON and at least up to LOG_INFO.  At half of max_bytes the file is
 * renamed to PATH LOG_OLD, replacing the previous LOG_OLD file.  Several processes may use the same file.
 * Errors: CSN_E_SYSTEM.
 */
#define LOG_OLD ".1"
int log_open(const char *path, uint64_t max_bytes, struct csn_error *err);
void log_close(void);

/* ---- event loop (loop.c) ---- */

/*
 * epoll(7) and timers, single-threaded.  A watch or a timer is embedded in its owner; all zeros with fd -1: not
 * set.  Callbacks may stop any watch or timer, including their own.
 */
struct loop;

struct watch {
        int fd;
        void (*ready)(struct watch *watch, uint32_t epoll_events);
        void *owner;
        bool active;
        uint32_t events;       /* current events of the epoll entry */
};

struct timer {
        void (*fired)(struct timer *timer);
        void *owner;
        uint64_t at_us;           /* CLOCK_MONOTONIC */
        bool active;
        struct timer *child, *prev, *next;   /* the loop's; prev of a first child is its parent */
        uint64_t number;
};

/* Create a loop; *ret belongs to the caller until loop_free().  Errors: CSN_E_SYSTEM. */
int loop_new(struct loop **ret, struct csn_error *err);
/*
 * Schedule this thread by SCHED_BATCH (sched(7)): on wake-up the thread does not preempt the running process; on an
 * idle CPU it starts at once, as before.  For processes answering many short messages: several messages of a sender
 * are handled in one turn, instead of two context switches each.  The thread also requests long slices, so that
 * the receivers of its answers preempt it (sched_setattr(2); from Linux 6.12 on the shorter slice runs first).
 * Children of fork(3) have default scheduling.
 */
void loop_set_batch_scheduling(void);
/* Undo loop_set_batch_scheduling() in a copy of the process by clone3(2); fork(3) does so by itself. */
void loop_set_usual_scheduling(void);
void loop_free(struct loop *loop);
/* The epoll descriptor: readable when loop_step() would serve a watch. */
int loop_fd(struct loop *loop);
/* Watch fd for epoll_events; a second call changes the events.  fd stays the caller's.  Errors: CSN_E_SYSTEM. */
int loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t epoll_events, struct csn_error *err);
void loop_unwatch(struct loop *loop, struct watch *watch);   /* does not close fd */
void loop_timer(struct loop *loop, struct timer *timer, uint64_t after_us);   /* a second call moves the timer */
void loop_untimer(struct loop *loop, struct timer *timer);
/* Wait at most max_ms (-1: until an event), then serve ready watches and timers.  Errors: CSN_E_SYSTEM. */
int loop_step(struct loop *loop, int max_ms, struct csn_error *err);

/* Called around each callback of all loops of this process, for measuring (step_probe.c). */
struct loop_observer {
        void (*begin)(void);
        void (*end)(const void *callback);   /* the address of the called function */
};
void loop_set_observer(const struct loop_observer *observer);

/* ---- words (distance.c) ---- */

/* Bytes of a compared word; a longer word has this distance to every word. */
#define DISTANCE_LEN_MAX 48
/*
 * The number of letters missing, added, changed or exchanged with their neighbour (optimal string alignment).
 */
size_t text_distance(const char *one, size_t one_len, const char *other, size_t other_len);

#endif
