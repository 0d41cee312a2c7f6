/*
 * For clang-tidy only.  It reads one file at a time, so it takes a function that ends with err_set() for one that
 * may return 0 and leave its ret_ parameters untouched.  Here it sees what is true: the result is negative.
 */
#ifndef ERRORS_MODEL_H
#define ERRORS_MODEL_H

#include "base/base.h"

#define err_set(err, code, ...) ((void)err_set(err, code, __VA_ARGS__), -(code))
#define err_field(...) ((void)err_field(__VA_ARGS__), -CSN_E_INPUT)
#define err_setting(...) ((void)err_setting(__VA_ARGS__), -CSN_E_CONFIG)
#define err_wrap(...) ((void)err_wrap(__VA_ARGS__), -CSN_E_SYSTEM)

#endif
