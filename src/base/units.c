/* Clocks, and numbers with units, as used in options, environment and files. */
#include "base/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

uint64_t clock_us(void)
{
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_number(uint64_t *newest)
{
        uint64_t now = clock_us();
        *newest = now > *newest ? now : *newest + 1;
        return *newest;
}

uint64_t clock_work_us(void)
{
        struct timespec now;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_ms(void)
{
        return clock_us() / 1000;
}

int64_t time_now_ms(void)
{
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void time_print(int64_t ms, char *text, size_t size)
{
        const time_t seconds = (time_t)(ms / 1000);
        struct tm utc;
        gmtime_r(&seconds, &utc);
        snprintf(text, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                utc.tm_hour, utc.tm_min, utc.tm_sec, (unsigned)(ms % 1000));
}

struct unit {
        const char *name;
        uint64_t factor;
};

/* The first unit that divides a value evenly is printed. */
static const struct unit sizes[] = {
        { "TiB", 1024 * GIB },
        { "GiB", GIB },
        { "MiB", MIB },
        { "KiB", KIB },
        { "Ti", 1024 * GIB },
        { "Gi", GIB },
        { "Mi", MIB },
        { "Ki", KIB },
        { "TB", 1000000000000 },
        { "GB", 1000000000 },
        { "MB", 1000000 },
        { "kB", 1000 },
        { "KB", 1000 },
        { "G", 1000000000 },
        { "M", 1000000 },
        { "k", 1000 },
        { "K", 1000 },
        { "B", 1 },
        { "", 1 },
};

static const struct unit durations[] = {
        { "d", 86400000 }, { "h", 3600000 }, { "min", 60000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 }, { "", 1000 },
};

static const struct unit cores[] = { { "", 1000 }, { "m", 1 } };

/*
 * A decimal number and a unit.  Integers only: nine fractional digits are exact, and "0.1" never becomes 99 through
 * binary fractions.
 */
static bool number_parse(const char *text, const struct unit *units, size_t units_n, uint64_t *ret)
{
        uint64_t whole = 0, part = 0, scale = 1;
        const char *at = text;
        bool digits = false;
        for (; *at >= '0' && *at <= '9'; at++, digits = true) {
                if (whole > (UINT64_MAX / 10) - 1)
                        return false;
                whole = whole * 10 + (uint64_t)(*at - '0');
        }
        if (*at == '.') {
                at++;
                for (; *at >= '0' && *at <= '9'; at++, digits = true)
                        if (scale < 1000000000) {
                                part = part * 10 + (uint64_t)(*at - '0');
                                scale *= 10;
                        }
        }
        if (!digits)
                return false;
        if (*at == ' ')
                at++;
        for (size_t i = 0; i < units_n; i++)
                if (strcmp(at, units[i].name) == 0) {
                        uint64_t value, extra;
                        if (__builtin_mul_overflow(whole, units[i].factor, &value) ||
                            __builtin_mul_overflow(part, units[i].factor, &extra) ||
                            __builtin_add_overflow(value, extra / scale, ret))
                                return false;
                        return true;
                }
        return false;
}

bool size_parse(const char *text, uint64_t *ret_bytes)
{
        return number_parse(text, sizes, ARRAY_LEN(sizes), ret_bytes);
}

bool duration_parse(const char *text, uint64_t *ret_ms)
{
        return number_parse(text, durations, ARRAY_LEN(durations), ret_ms);
}

bool cores_parse(const char *text, uint64_t *ret_milli)
{
        return number_parse(text, cores, ARRAY_LEN(cores), ret_milli);
}

/* Digits with at most one point, into `value` without the point; *ret_scale counts the digits behind the point. */
static const char *digits_parse(const char *at, uint64_t *value, int *ret_scale)
{
        bool point = false, any = false;
        for (*value = 0, *ret_scale = 0; (*at >= '0' && *at <= '9') || (*at == '.' && !point); at++) {
                if (*at == '.') {
                        point = true;
                        continue;
                }
                any = true;
                if (__builtin_mul_overflow(*value, 10, value) ||
                        __builtin_add_overflow(*value, (uint64_t)(*at - '0'), value))
                        return NULL;
                *ret_scale += point;
        }
        return any ? at : NULL;
}

bool decimal_parse(const char *text, unsigned places, uint64_t *ret)
{
        uint64_t value;
        int scale;
        long power = 0;
        const char *at = digits_parse(text, &value, &scale);
        if (at && (*at == 'e' || *at == 'E')) {
                const char *digits = at + 1 + (at[1] == '-' || at[1] == '+');
                size_t n = strspn(digits, "0123456789");
                if (!n || n > 4)
                        return false;
                power = strtol(at + 1, NULL, 10);
                at = digits + n;
        }
        if (!at || *at)
                return false;
        for (power += (long)places - scale; power > 0 && value; power--)
                if (__builtin_mul_overflow(value, 10, &value))
                        return false;
        for (; power < -1 && value; power++)
                value /= 10;
        *ret = power == -1 ? value / 10 + (value % 10 >= 5) : value;
        return true;
}

void size_print(uint64_t bytes, char *text, size_t size)
{
        for (size_t i = 0; i < 4; i++)
                if (bytes && bytes % sizes[i].factor == 0) {
                        snprintf(text, size, "%" PRIu64 "%s", bytes / sizes[i].factor, sizes[i].name);
                        return;
                }
        snprintf(text, size, "%" PRIu64, bytes);
}

void duration_print(uint64_t ms, char *text, size_t size)
{
        if (ms % 1000 == 0)
                snprintf(text, size, "%" PRIu64 "s", ms / 1000);
        else if (ms > 1000)
                snprintf(text, size, "%" PRIu64 ".%03us", ms / 1000, (unsigned)(ms % 1000));
        else
                snprintf(text, size, "%" PRIu64 "ms", ms);
}

void cores_print(uint64_t milli, char *text, size_t size)
{
        if (milli % 1000 == 0)
                snprintf(text, size, "%" PRIu64, milli / 1000);
        else
                snprintf(text, size, "%" PRIu64 ".%03u", milli / 1000, (unsigned)(milli % 1000));
}
