/*
 * multipart: a body of multipart/form-data (RFC 7578, RFC 2046 5.1) as it comes, in pieces.
 *
 * libmicrohttpd's post processor takes everything that it is given and tells where a part begins by an offset of 0, which an empty
 * file and the next one have both.  This one holds what has not been taken, so whoever writes the parts somewhere slow can wait.
 */
#ifndef FRONT_MULTIPART_H
#define FRONT_MULTIPART_H

#include "base/base.h"

#define MULTIPART_BOUNDARY_MAX 70              /* RFC 2046 */
#define MULTIPART_HEAD_MAX (8 * KIB)           /* of the headers of a part */
#define MULTIPART_NAME_MAX 4096
#define MULTIPART_FIELD_MAX 64

enum multipart_step {
        MULTIPART_MORE,                        /* more of the body is needed */
        MULTIPART_PART,                        /* a part begins: its name */
        MULTIPART_DATA,
        MULTIPART_END,                         /* the part is whole */
        MULTIPART_DONE,                        /* that was the last one */
};

struct multipart {
        char delimiter[MULTIPART_BOUNDARY_MAX + 5];
        size_t delimiter_len;
        enum { MULTIPART_PREAMBLE, MULTIPART_BETWEEN, MULTIPART_HEAD, MULTIPART_BODY, MULTIPART_EPILOGUE } state;
        struct buf buf;                        /* from `at` on it has not been taken */
        size_t at;
        char field[MULTIPART_FIELD_MAX];       /* the name of the part itself; "" where it has none, or one that is longer */
        bool has_name;                         /* the part is a file */
        char name[MULTIPART_NAME_MAX];         /* as it was given: UTF-8, or anything but NUL */
        const char *bytes;                     /* of DATA; until the next call of anything here */
        size_t len;
};

/* By the Content-Type of a request.  Errors: CSN_E_INPUT. */
int multipart_init(struct multipart *multipart, const char *type, struct csn_error *err);
void multipart_done(struct multipart *multipart);

/* Hold more of the body; says how much of it there was room for. */
size_t multipart_add(struct multipart *multipart, const char *bytes, size_t len);
/* What comes next, the same again until it is taken; or a negative code: CSN_E_INPUT. */
int multipart_next(struct multipart *multipart, struct csn_error *err);
/* Of DATA so many bytes; of everything else the whole. */
void multipart_take(struct multipart *multipart, int step, size_t len);

#endif
