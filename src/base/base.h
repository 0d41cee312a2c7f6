/*
 * base: what every other folder stands on, and nothing but libc below it.
 *
 * Errors as values, memory that goes with its owner, buffers with a ceiling, descriptors that close
 * themselves, an event loop, sizes and durations as people write them, a log of JSON lines.
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
 * Fill err and return -code.  sys is an errno or 0; when it is not 0 its text is appended (": No such
 * file or directory").  err may be NULL.  Texts longer than the struct are cut.
 */
int err_set(struct csn_error *err, int code, int sys, const char *fmt, ...) PRINTF_LIKE(4, 5);

/*
 * Of a step that a kernel, a container or a service can forbid: where its errno says so, CSN_E_SYSTEM becomes CSN_E_UNSUPPORTED.  Returns
 * -err->code.
 */
int err_refused(struct csn_error *err);

/* As err_set with CSN_E_INPUT, and the name of the field that is wrong. */
int err_field(struct csn_error *err, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Put what the caller knew in front of the text: "FMT: old text".  Returns -err->code. */
int err_wrap(struct csn_error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Whether execve(2) failed with `sys` because of the file itself: it is not there, or it is no program that can be started here. */
bool err_is_no_program(int sys);

/* An interpreter that execve(2) refused with errno: CSN_E_LANGUAGE for a file as above, else CSN_E_UNSUPPORTED. */
int err_interpreter(struct csn_error *err, const char *path);

/* The code of a name (csn_code_name); 0: there is none of that name. */
int err_code_of(const char *name);

/* ---- descriptors (io.c) ---- */

/* Close *fd unless it is negative, set it to -1, leave errno alone. */
void fd_close(int *fd);

#define auto_fd __attribute__((cleanup(fd_close))) int

/* Hand the descriptor over: returns *fd and leaves -1, so that auto_fd does not close it. */
static inline int take_fd(int *fd)
{
        int taken = *fd;
        *fd = -1;
        return taken;
}

/* Write all of it, going on after EINTR and short writes.  0, or -1 with errno. */
int io_write_all(int fd, const void *bytes, size_t len);

/*
 * Read a whole file of at most max bytes into buf, which gets a final NUL (so max + 1 bytes are needed).
 * Returns the bytes read, or -1 with errno; EFBIG when there is more.
 */
ssize_t io_read_file(int dir_fd, const char *path, char *buf, size_t max);

/* Make a folder and those above it that are missing, for their owner alone.  0, or -1 with errno. */
int io_make_folders(const char *path);

/* Write text to an existing file in one write(2), as kernel files want it.  0, or -1 with errno. */
int io_write_file(int dir_fd, const char *path, const char *text);

/* A sealed memfd with these bytes, offset 0, read-only from then on.  -1 with errno. */
int io_memfd(const char *name, const void *bytes, size_t len);
/*
 * A descriptor from which these signals are read instead of being delivered (signalfd(2)), not blocking.  Errors:
 * CSN_E_SYSTEM.
 */
int io_signals(const int *numbers, size_t n, struct csn_error *err);
/* SIGINT, SIGTERM and SIGHUP: what asks a program to end. */
#define IO_ENDS 3
extern const int io_ends[IO_ENDS];

/* Remove a folder of ours and all below it, whatever is in it and however deep, without following links (remove_tree.c). */
void io_remove_tree(int parent_fd, const char *name);

/* ---- memory (mem.c) ---- */

/*
 * One policy for running out of memory: the process says so in one line and ends.  Every size that comes
 * from outside is bounded before it reaches these, so this is a failing machine and not a hostile request.
 */
void *mem_alloc(size_t size);                    /* zeroed; free() it */
void *mem_resize(void *old, size_t size);        /* not zeroed */
char *mem_copy(const char *text, size_t len);    /* len bytes and a NUL */

/* An arena: many small allocations with one owner and one end.  All zeros is an empty arena. */
struct arena {
        struct arena_block *blocks;
};

void *arena_alloc(struct arena *arena, size_t size);                   /* zeroed, aligned for any type */
char *arena_copy(struct arena *arena, const char *text, size_t len);   /* len bytes and a NUL */
char *arena_text(struct arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3);
void arena_done(struct arena *arena);                                  /* everything goes; empty again */

/* ---- buffers (buf.c) ---- */

/* Bytes that grow up to a ceiling.  Create with buf_init(&b, ceiling); all zeros is empty with ceiling 0. */
struct buf {
        char *bytes;     /* always NUL-terminated once anything was appended */
        size_t len;
        size_t size;
        size_t max;
};

void buf_init(struct buf *buf, size_t max);
void buf_done(struct buf *buf);
bool buf_add(struct buf *buf, const void *bytes, size_t len);   /* false, and unchanged, past the ceiling */
bool buf_printf(struct buf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * The first and the last part of a stream of any length, in constant memory.  `max` bytes are kept: the
 * first half never changes, the second half is a ring of what came last.
 */
struct capture {
        char *bytes;     /* head, then ring; at most max in use */
        size_t size;
        size_t max;
        size_t head;     /* bytes of the head in use, at most max / 2 rounded up */
        size_t ring_at;  /* where the oldest byte of the ring is, relative to the ring */
        size_t ring;     /* bytes of the ring in use */
        uint64_t total;  /* everything that ever came */
};

void capture_init(struct capture *cap, size_t max);
void capture_done(struct capture *cap);
void capture_add(struct capture *cap, const void *bytes, size_t len);
/* head + tail in order, as one new string of *ret_len bytes from the arena; *ret_cut is where the gap is. */
char *capture_text(const struct capture *cap, struct arena *arena, size_t *ret_len, size_t *ret_cut);

/* ---- clocks, sizes and durations (units.c) ---- */

uint64_t clock_ms(void);   /* CLOCK_MONOTONIC in milliseconds */
uint64_t clock_us(void);   /* CLOCK_MONOTONIC in microseconds */
uint64_t clock_work_us(void);   /* of the processor, by this process: what other programs do is not in it */

/* Milliseconds since 1970 (UTC), and such a moment as RFC 3339 has it: "2026-11-21T10:00:00.000Z". */
int64_t time_now_ms(void);
void time_print(int64_t ms, char *text, size_t size);

/*
 * "512MiB", "100M", "64k", "1.5GiB", "1000": bytes.  IEC suffixes (KiB, Ki) are powers of 1024, SI ones
 * (k, kB, M, MB) powers of 1000; Kubernetes and people both write these.  Returns false if it is no size.
 */
bool size_parse(const char *text, uint64_t *ret_bytes);

/* "30s", "500ms", "2min", "1.5h", "30d", "30" (seconds): milliseconds.  Returns false if it is no duration. */
bool duration_parse(const char *text, uint64_t *ret_ms);

/* "1", "0.5", "500m" (Kubernetes' millicores): thousandths of a core. */
bool cores_parse(const char *text, uint64_t *ret_milli);

/* The shortest exact spelling that the parsers read back: "512MiB", "30s", "1.5". */
void size_print(uint64_t bytes, char *text, size_t size);
void duration_print(uint64_t ms, char *text, size_t size);
void cores_print(uint64_t milli, char *text, size_t size);

/* ---- hexadecimal digits (hex.c) ---- */

/* Lower case, two for each byte, and a NUL after them: text has room for 2 * len + 1. */
void hex_print(const void *bytes, size_t len, char *text);

/*
 * An id: so many random bytes (at most HEX_RANDOM_MAX), never all zeros, printed the same way.  So few come whole once the
 * kernel's generator is seeded, and until then the call waits (getrandom(2)).
 */
#define HEX_RANDOM_MAX 32
void hex_random(size_t len, char *text);

/* ---- UTF-8 (utf8.c) ---- */

/* The length of the valid UTF-8 sequence at the front of these bytes, or 0 if there is none (RFC 3629). */
size_t utf8_step(const char *bytes, size_t len);
bool utf8_valid(const char *bytes, size_t len);
/* How much of these bytes ends with a whole character; what cannot become one counts as whole. */
size_t utf8_whole(const char *bytes, size_t len);

/* ---- log (log.c) ---- */

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

enum log_format { LOG_FORMAT_JSON, LOG_FORMAT_TEXT };

/* What a line is about; NULL and "" are left out. */
struct log_context {
        const char *request, *trace, *run, *owner;
};

/*
 * One JSON object a line to stderr: {"time":…,"level":…,"text":…}, and request_id, trace_id, run_id and owner where they
 * are known; or the same as plain text.  Nothing is written above the level set (LOG_WARN at the start).  Callers never
 * pass code, output or secrets.
 */
const char *log_level_name(size_t level);   /* "error" and so on; NULL after the last */
void log_set_level(enum log_level level);
void log_set_format(enum log_format format);
void log_text(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);
void log_about(enum log_level level, const struct log_context *context, const char *fmt, ...) PRINTF_LIKE(3, 4);

/*
 * Keep lines in a file as well (mode 0600), as JSON and up to LOG_INFO at least.  From half of max_bytes on it becomes
 * PATH LOG_OLD, in the place of the one before.  Several processes may have one file.  Errors: CSN_E_SYSTEM.
 */
#define LOG_OLD ".1"
int log_open(const char *path, uint64_t max_bytes, struct csn_error *err);
void log_close(void);

/* ---- event loop (loop.c) ---- */

/*
 * epoll(7) and timers, one thread.  A watch or a timer is embedded in its owner; all zeros with fd -1 is
 * one that is not set.  Callbacks may stop any watch or timer, their own too.
 */
struct loop;

struct watch {
        int fd;
        void (*ready)(struct watch *watch, uint32_t epoll_events);
        void *owner;
        bool active;
        uint32_t events;       /* that epoll was asked for */
};

struct timer {
        void (*fired)(struct timer *timer);
        void *owner;
        uint64_t at_us;           /* CLOCK_MONOTONIC */
        bool active;
        struct timer *next;
};

int loop_new(struct loop **ret, struct csn_error *err);
/*
 * This thread, once awake, does not interrupt whoever runs (SCHED_BATCH in sched(7)); on an idle processor it runs at once, as before.
 * For those that answer many short messages: several that one program sends become one turn, where each had cost the program two
 * switches.  And it is interrupted by whom it has answered, for it asks for longer slices than others (sched_setattr(2); from
 * Linux 6.12 on the shorter slice comes first).  What it starts by fork(3) is as everybody.
 */
void loop_set_batch_scheduling(void);
void loop_free(struct loop *loop);
int loop_fd(struct loop *loop);   /* the epoll descriptor: readable when loop_step would do something for a watch */
int loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t epoll_events, struct csn_error *err);
void loop_unwatch(struct loop *loop, struct watch *watch);   /* does not close the descriptor */
void loop_timer(struct loop *loop, struct timer *timer, uint64_t after_us);   /* again: moves it */
void loop_untimer(struct loop *loop, struct timer *timer);
/* Wait at most max_ms (-1: until something happens) and serve what is ready. */
int loop_step(struct loop *loop, int max_ms, struct csn_error *err);

#endif
