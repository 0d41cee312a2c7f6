/* Errors as values, and the only table of error codes (errors.def). */
#include "base/base.h"

#include <stdio.h>

static const struct {
        int code;
        const char *name;
        int http;
        int exit;
} codes[] = {
#define ERROR(name, number, text, http, exit, meaning) { CSN_E_##name, text, http, exit },
#include <caisson/errors.def>
#undef ERROR
};

const char *csn_code_name(int code)
{
        for (size_t i = 0; i < ARRAY_LEN(codes); i++)
                if (codes[i].code == code)
                        return codes[i].name;
        return "unknown";
}

int err_code_of(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(codes); i++)
                if (strcmp(codes[i].name, name) == 0)
                        return codes[i].code;
        return 0;
}

int csn_code_exit(int code)
{
        for (size_t i = 0; i < ARRAY_LEN(codes); i++)
                if (codes[i].code == code)
                        return codes[i].exit;
        return 125;
}

int csn_code_http(int code)
{
        for (size_t i = 0; i < ARRAY_LEN(codes); i++)
                if (codes[i].code == code)
                        return codes[i].http;
        return 500;
}

/* Quoted text may come from any source and be cut anywhere; JSON needs UTF-8. */
static void make_utf8(char *text)
{
        size_t len = strlen(text);
        while (len) {
                size_t n = utf8_step(text, len);
                if (!n)
                        *text = '?';
                text += n ? n : 1;
                len -= n ? n : 1;
        }
}

/* Too many open files is a question of load and not a fault: later there may be room. */
static int code_of(int code, int sys)
{
        return code == CSN_E_SYSTEM && (sys == EMFILE || sys == ENFILE) ? CSN_E_BUSY : code;
}

static void fill(struct csn_error *err, int code, int sys, const char *fmt, va_list args)
{
        memset(err, 0, sizeof *err);
        err->code = code;
        err->sys = sys;
        vsnprintf(err->text, sizeof err->text, fmt, args);
        if (sys != 0) {
                size_t len = strlen(err->text);
                snprintf(err->text + len, sizeof err->text - len, ": %s", strerrordesc_np(sys));
        }
        make_utf8(err->text);
}

int err_set(struct csn_error *err, int code, int sys, const char *fmt, ...)
{
        code = code_of(code, sys);
        if (err) {
                va_list args;
                va_start(args, fmt);
                fill(err, code, sys, fmt, args);
                va_end(args);
        }
        return -code;
}

int err_storage(struct csn_error *err, int sys, const char *fmt, ...)
{
        char text[sizeof err->text];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        return err_set(err, sys == ENOSPC || sys == EDQUOT ? CSN_E_BUSY : CSN_E_SYSTEM, sys, "%s", text);
}

int err_refused(struct csn_error *err)
{
        static const int of_the_host[] = { EPERM, EACCES, ENOSYS, EOPNOTSUPP, ENODEV, ENOSPC, EUSERS, EROFS };
        for (size_t i = 0; i < ARRAY_LEN(of_the_host) && err->code == CSN_E_SYSTEM; i++)
                if (err->sys == of_the_host[i])
                        err->code = CSN_E_UNSUPPORTED;
        return -err->code;
}

int err_field(struct csn_error *err, const char *field, const char *fmt, ...)
{
        if (err) {
                va_list args;
                va_start(args, fmt);
                fill(err, CSN_E_INPUT, 0, fmt, args);
                va_end(args);
                snprintf(err->field, sizeof err->field, "%s", field);
                make_utf8(err->field);
        }
        return -CSN_E_INPUT;
}

int err_setting(struct csn_error *err, const char *key, const char *fmt, ...)
{
        if (err) {
                va_list args;
                va_start(args, fmt);
                fill(err, CSN_E_CONFIG, 0, fmt, args);
                va_end(args);
                snprintf(err->field, sizeof err->field, "%s", key);
                make_utf8(err->field);
        }
        return -CSN_E_CONFIG;
}

int err_wrap(struct csn_error *err, const char *fmt, ...)
{
        if (!err)
                return -CSN_E_SYSTEM;
        char text[sizeof err->text];
        va_list args;
        va_start(args, fmt);
        int len = vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        if (len >= 0 && (size_t)len < sizeof text)
                snprintf(text + len, sizeof text - (size_t)len, ": %s", err->text);
        make_utf8(text);
        memcpy(err->text, text, sizeof text);
        return -err->code;
}

bool err_is_no_program(int sys)
{
        static const int of_the_file[] = { ENOENT, ENOTDIR, EACCES, ENOEXEC, ELIBBAD, EISDIR, ELOOP, ENAMETOOLONG };
        for (size_t i = 0; i < ARRAY_LEN(of_the_file); i++)
                if (of_the_file[i] == sys)
                        return true;
        return false;
}

int err_interpreter(struct csn_error *err, const char *path)
{
        int sys = errno;
        if (!err_is_no_program(sys))
                return err_set(err, CSN_E_UNSUPPORTED, sys, "start %s inside the sandbox", path);
        err_set(err, CSN_E_LANGUAGE, sys,
                "this host, or the image, has no %s that a sandbox can start; install the interpreter below /usr", path);
        if (err)
                snprintf(err->field, sizeof err->field, "/language");
        return -CSN_E_LANGUAGE;
}
