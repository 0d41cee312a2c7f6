/*
 * What E2B's clients send, from any bytes: as an envelope, as an object with members, and as a path, a header and its
 * value, which a NUL divides.
 */
#include "front/e2b/envd/envd.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* What the account is asked for is below "/", and never so long that it has no room. */
static void try_path(const char *text)
{
        char path[GUEST_PATH_MAX], again[GUEST_PATH_MAX];
        struct csn_error err;
        for (int account = account_USER; account <= account_ROOT; account++)
                if (spell_path(text, account, NULL, path, &err) == 0 &&
                        (path[0] != '/' || strlen(path) >= GUEST_PATH_MAX ||
                                spell_path(path, account, NULL, again, &err) < 0 || strcmp(path, again) != 0 ||
                                !spell_name(path)[0]))
                        abort();
}

static void try_label(const char *header, const char *value)
{
        struct arena arena = { 0 };
        struct csn_error err;
        char *label = NULL;
        if (spell_label(header, value, &arena, &label, &err) == 1 &&
                (!strchr(label, '=') || label[0] == '=' || strcmp(strchr(label, '=') + 1, value) != 0))
                abort();
        arena_done(&arena);
}

static void try_members(const uint8_t *bytes, size_t len)
{
        static const struct e2b_member members[] = {
                { .name = "path", .kind = E2B_TEXT },
                { .name = "stdin", .kind = E2B_BOOL },
                { .name = "depth", .kind = E2B_NUMBER, .most = UINT32_MAX },
                { .name = "process", .kind = E2B_OBJECT },
                { .name = "process.args", .kind = E2B_TEXTS },
                { .name = "process.envs", .kind = E2B_VARIABLES },
                { .name = "signal", .kind = E2B_WORD, .words = "SIGNAL_SIGKILL SIGNAL_SIGTERM" },
                { 0 },
        };
        json_t *json = json_loadb((const char *)bytes, len, 0, NULL);
        struct csn_error err;
        uint64_t depth = 0;
        if (json_is_object(json) && e2b_check(json, members, &err) == 0 &&
                e2b_number(json_object_get(json, "depth"), &depth) && depth > UINT32_MAX)
                abort();
        json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct arena arena = { 0 };
        struct csn_error err;
        size_t at, inner;
        char mode[SPELL_MODE_MAX], signature[SPELL_SIGNATURE_MAX];
        uint64_t number = 0;
        if (rpc_unwrap((const char *)bytes, len, &at, &inner, &err) == 0 && (at + inner != len || bytes[0]))
                abort();
        const char *text = arena_copy(&arena, (const char *)bytes, len),
                   *rest = text + strlen(text) + (strlen(text) < len);
        memcpy(&number, bytes, min_u64(len, sizeof number));
        spell_mode(number, mode);
        spell_signature(text, len % 2, rest, "token", len % 3 ? rest : NULL, signature);
        rpc_header_number(text);
        try_members(bytes, len);
        try_path(text);
        try_label(text, rest);
        arena_done(&arena);
        return 0;
}
