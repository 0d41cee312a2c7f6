/*
 * multipart: an incremental parser for multipart/form-data (RFC 7578, RFC 2046 5.1).
 *
 * libmicrohttpd's post processor consumes all input at once and marks the begin of a part by offset 0, which an empty
 * file and the following file share.  This parser keeps unconsumed input, so a slow consumer can apply back-pressure.
 */
#ifndef NET_MULTIPART_H
#define NET_MULTIPART_H

#include "base/base.h"

#define MULTIPART_BOUNDARY_MAX 70              /* RFC 2046 */
#define MULTIPART_HEAD_MAX (8 * KIB)           /* bytes of the headers of a part */
#define MULTIPART_NAME_MAX 4096
#define MULTIPART_FIELD_MAX 64

enum multipart_step {
        MULTIPART_MORE,                        /* more input is needed */
        MULTIPART_PART,                        /* a part begins: its name is known */
        MULTIPART_DATA,
        MULTIPART_END,                         /* the part is complete */
        MULTIPART_DONE,                        /* after the last part */
};

struct multipart {
        char delimiter[MULTIPART_BOUNDARY_MAX + 5];
        size_t delimiter_len;
        enum { MULTIPART_PREAMBLE, MULTIPART_BETWEEN, MULTIPART_HEAD, MULTIPART_BODY, MULTIPART_EPILOGUE } state;
        struct buf buf;                        /* unconsumed from `at` on */
        size_t at;
        char field[MULTIPART_FIELD_MAX];       /* the name of the part; "" if missing or too long */
        bool has_name;                         /* the part has a file name */
        char name[MULTIPART_NAME_MAX];         /* file name as sent: UTF-8, or any bytes but NUL */
        const char *bytes;                     /* of DATA; valid until the next call */
        size_t len;
};

/* Begin with the Content-Type of a request.  The caller ends with multipart_done().  Errors: CSN_E_INPUT. */
int multipart_init(struct multipart *multipart, const char *type, struct csn_error *err);
void multipart_done(struct multipart *multipart);

/* Add input; returns the number of bytes consumed, limited by the buffer. */
size_t multipart_add(struct multipart *multipart, const char *bytes, size_t len);
/* The next step, repeated until multipart_take().  Errors: CSN_E_INPUT. */
int multipart_next(struct multipart *multipart, struct csn_error *err);
/* Consume len bytes of DATA, or any other step as a whole. */
void multipart_take(struct multipart *multipart, int step, size_t len);

#endif
