/*
 * Reads the log file of daemons (log_open() of base): STATE_DIR/caissond.log, and the previous file.  The file is
 * readable without a running daemon, so it also explains why a daemon ended.
 */
#ifndef FRONT_VIEWS_LOG_READER_H
#define FRONT_VIEWS_LOG_READER_H

#include "model/settings.h"

#define LOGS_DEFAULT 100                   /* lines */
#define LOGS_LIST_MAX 10000

/* Selects log lines by their fields; NULL and "" match all. */
struct logs_filter {
        const char *run, *request, *trace, *owner;
        enum log_level level;              /* this level and worse */
};

/* Position of a reader that waits for more lines. */
struct logs_place {
        int fd;                            /* -1: no file */
        off_t at;
};

/* Path of the log file, from the arena. */
char *logs_path(const struct settings *settings, struct arena *arena);
/* Parse a level, "error" and so on.  Errors: CSN_E_INPUT naming `field` and the valid levels. */
int logs_level(const char *word, const char *field, enum log_level *ret, struct csn_error *err);

/*
 * Append the last n matching lines to buf, oldest first.  *ret_place, unless NULL, is the position after the last line;
 * its descriptor is the caller's.  Errors: CSN_E_INPUT (there is no log), CSN_E_SYSTEM.
 */
int logs_read(const char *path, const struct logs_filter *filter, size_t n, struct buf *buf,
        struct logs_place *ret_place, struct csn_error *err);
/* Append the matching lines since `place`, if any.  Errors: CSN_E_SYSTEM. */
int logs_more(const char *path, const struct logs_filter *filter, struct logs_place *place, struct buf *buf,
        struct csn_error *err);

#endif
