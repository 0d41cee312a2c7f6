/*
 * Errors are values: a small struct that the caller owns, with nothing to allocate and nothing to free, so
 * that it can cross a socket from a child as it is.
 */
#ifndef CAISSON_ERROR_H
#define CAISSON_ERROR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CSN_API __attribute__((visibility("default")))

enum csn_code {
        CSN_OK = 0,
#define ERROR(name, number, code, http, exit, meaning) CSN_E_##name = (number),
#include <caisson/errors.def>
#undef ERROR
};

struct csn_error {
        int code;        /* enum csn_code, positive; 0: no error */
        int sys;         /* errno at the place where it happened, or 0 */
        char field[64];  /* the request field or setting that is wrong, or "" */
        char text[512];  /* one sentence in English for a person, without a final full stop */
};

/* The code as it stands in records ("bad_request"); "unknown" for a number that is none of ours. */
CSN_API const char *csn_code_name(int code);

/* The exit status of a command that fails with this code (sysexits(3) where it fits, else 125). */
CSN_API int csn_code_exit(int code);

/* The HTTP status of an answer that carries this code. */
CSN_API int csn_code_http(int code);

#ifdef __cplusplus
}
#endif

#endif
