/*
 * Hostile JSON as a request: whatever is accepted can be written and read again without a change, and is
 * still within every bound after a profile and the settings were laid under it.
 */
#include "model/settings.h"

#include <stdio.h>

static void require(bool condition)
{
        if (!condition)
                abort();
}

static void survives_the_journey(const struct run_request *request, struct arena *arena)
{
        struct run_request again = { 0 };
        struct csn_error err;
        json_t *out = model_encode(&object_run_request, request);
        /* Bytes that are no text are written twice, and only one of the two may be read. */
        static const char *const bytes[] = { "code", "stdin" };
        for (size_t i = 0; i < ARRAY_LEN(bytes); i++) {
                char name[40];
                snprintf(name, sizeof name, "%s_base64", bytes[i]);
                if (json_object_get(out, name))
                        json_object_del(out, bytes[i]);
        }
        size_t i;
        json_t *file;
        json_array_foreach(json_object_get(out, "files"), i, file)
                if (json_object_get(file, "content_base64"))
                        json_object_del(file, "content");
        require(model_decode(&object_run_request, out, arena, &again, &err) == 0);
        require(again.present == request->present && again.limits.present == request->limits.present);
        require(again.code.len == request->code.len && again.stdin.len == request->stdin.len);
        require(!again.code.len || memcmp(again.code.bytes, request->code.bytes, again.code.len) == 0);
        json_decref(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        static struct settings settings;
        struct arena arena = { 0 };
        struct run_request request = { 0 };
        struct csn_error err = { 0 };
        if (!settings.list)
                require(settings_load(&(struct settings_sources){ .file = "/dev/null" }, &settings, &err) ==
                        0);
        if (model_decode_text(&object_run_request, (const char *)bytes, len, &arena, &request, &err) == 0) {
                survives_the_journey(&request, &arena);
                bool good = model_check_request(&request, len % 2, &err) == 0;
                if (settings_apply(&settings, &request, &arena, &err) == 0) {
                        require(request.limits.wall_ms >= 1 &&
                                request.limits.wall_ms <= settings.ceilings.wall_ms);
                        require(strcmp(request.backend, "host") != 0);
                        survives_the_journey(&request, &arena);
                        require(!good || model_check_request(&request, true, &err) == 0);
                } else {
                        require(err.code == CSN_E_INPUT && err.text[0]);
                }
        } else {
                require(err.code == CSN_E_INPUT && err.text[0]);
        }
        char **packages;
        size_t n;
        char *text = arena_copy(&arena, (const char *)bytes, len);
        if (model_parse_packages(text, &arena, &packages, &n, &err) == 0)
                for (size_t i = 0; i < n; i++)
                        require(packages[i][0] && packages[i][0] != '-' &&
                                !strpbrk(packages[i], "\n\r\t;$`|&()\\:\"'"));
        arena_done(&arena);
        return 0;
}
