/* Texts that models write: the program is a part of the text, shorter than it, and in the wanted language. */
#include "lang/extract.h"

static void require(bool condition)
{
        if (!condition)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        static const struct language *const wanted[] = { NULL, &lang_python, &lang_bash };
        const struct bytes text = { (char *)(uintptr_t)bytes, len };
        struct arena arena = { 0 };
        struct lang_extracted found;
        for (int mode = extract_NONE; mode <= extract_VERL; mode++)
                for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
                        if (!lang_extract(NULL, mode, wanted[i], &text, &arena, &found))
                                continue;
                        require(mode != extract_NONE && found.program.len && found.program.len < len);
                        require((found.line >= 2 || mode == extract_VERL) && !found.program.bytes[found.program.len]);
                        require(mode != extract_TAGGED_FENCE || found.language);
                        require(mode != extract_TAGGED_FENCE || !wanted[i] || found.language == wanted[i]);
                }
        arena_done(&arena);
        return 0;
}
