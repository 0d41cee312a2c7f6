/*
 * Errors are values: a small struct owned by the caller.  Without pointers, nothing is allocated or freed, and a child
 * process can send the struct over a socket unchanged.
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

/* Filled by each function with a negative result. */
struct csn_error {
        int code;        /* enum csn_code, positive; 0: no error */
        int sys;         /* errno of the failed system call, or 0 */
        char field[64];  /* the request field or setting at fault, or "" */
        char text[512];  /* one English sentence for a person, without a final full stop */
};

/* The name of a code in records ("bad_request"); "unknown" for an unknown number.  Static text. */
CSN_API const char *csn_code_name(int code);

/* The exit status of a command that fails with this code: from sysexits(3) where an equivalent exists, else 125. */
CSN_API int csn_code_exit(int code);

/* The HTTP status of an answer with this code. */
CSN_API int csn_code_http(int code);

#ifdef __cplusplus
}
#endif

#endif
