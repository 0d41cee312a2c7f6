/*
 * logs: what daemons have logged, from the file that they keep (log_open() of base): STATE_DIR/caissond.log, and the one
 * before it.  It is there whether a daemon is or not, so it also says why one has ended.
 */
#ifndef FRONT_LOGS_H
#define FRONT_LOGS_H

#include "model/settings.h"

#define LOGS_DEFAULT 100                   /* lines */
#define LOGS_LIST_MAX 10000

/* Lines about these; NULL and "" is any. */
struct logs_filter {
        const char *run, *request, *trace, *owner;
        enum log_level level;              /* and what is worse */
};

/* Where a reader is that waits for more. */
struct logs_place {
        int fd;                            /* -1: nowhere */
        off_t at;
};

/* From the arena. */
char *logs_path(const struct settings *settings, struct arena *arena);
/* "error" and so on.  Errors: CSN_E_INPUT naming `field` and the words that there are. */
int logs_level(const char *word, const char *field, enum log_level *ret, struct csn_error *err);

/*
 * The last n lines that match, oldest first, to the end of buf.  *ret_place, if wanted, is where the next ones will be; its
 * descriptor is the caller's.  Errors: CSN_E_INPUT (there is no log), CSN_E_SYSTEM.
 */
int logs_read(const char *path, const struct logs_filter *filter, size_t n, struct buf *buf, struct logs_place *ret_place, struct csn_error *err);
/* Those that came since, likewise; none is no error. */
int logs_more(const char *path, const struct logs_filter *filter, struct logs_place *place, struct buf *buf, struct csn_error *err);

#endif
