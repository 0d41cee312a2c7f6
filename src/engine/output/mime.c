/* MIME types: a small table by extension (RFC 2046 and IANA's registry), else by the first bytes. */
#include "engine/output/files.h"

#include <strings.h>

static const struct {
        const char *extension, *mime;
} by_extension[] = {
        { "bash", "application/x-sh" },
        { "bmp", "image/bmp" },
        { "bz2", "application/x-bzip2" },
        { "css", "text/css" },
        { "csv", "text/csv" },
        { "db", "application/vnd.sqlite3" },
        { "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
        { "gif", "image/gif" },
        { "gz", "application/gzip" },
        { "htm", "text/html" },
        { "html", "text/html" },
        { "ico", "image/vnd.microsoft.icon" },
        { "ipynb", "application/x-ipynb+json" },
        { "jpeg", "image/jpeg" },
        { "jpg", "image/jpeg" },
        { "js", "text/javascript" },
        { "json", "application/json" },
        { "jsonl", "application/x-ndjson" },
        { "log", "text/plain" },
        { "md", "text/markdown" },
        { "mjs", "text/javascript" },
        { "mp3", "audio/mpeg" },
        { "mp4", "video/mp4" },
        { "ndjson", "application/x-ndjson" },
        { "npy", "application/x-npy" },
        { "npz", "application/x-npz" },
        { "parquet", "application/vnd.apache.parquet" },
        { "pdf", "application/pdf" },
        { "pkl", "application/octet-stream" },
        { "png", "image/png" },
        { "pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation" },
        { "py", "text/x-python" },
        { "sh", "application/x-sh" },
        { "sqlite", "application/vnd.sqlite3" },
        { "svg", "image/svg+xml" },
        { "tar", "application/x-tar" },
        { "tif", "image/tiff" },
        { "tiff", "image/tiff" },
        { "toml", "application/toml" },
        { "ts", "text/x-typescript" },
        { "tsv", "text/tab-separated-values" },
        { "txt", "text/plain" },
        { "wasm", "application/wasm" },
        { "wav", "audio/wav" },
        { "webp", "image/webp" },
        { "xls", "application/vnd.ms-excel" },
        { "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
        { "xml", "application/xml" },
        { "xz", "application/x-xz" },
        { "yaml", "application/yaml" },
        { "yml", "application/yaml" },
        { "zip", "application/zip" },
};

static const struct {
        const char *magic;
        size_t len;
        const char *mime;
} by_magic[] = {
        { "\x89PNG\r\n\x1a\n", 8, "image/png" },
        { "\xff\xd8\xff", 3, "image/jpeg" },
        { "GIF8", 4, "image/gif" },
        { "%PDF-", 5, "application/pdf" },
        { "PK\x03\x04", 4, "application/zip" },
        { "\x1f\x8b", 2, "application/gzip" },
        { "BZh", 3, "application/x-bzip2" },
        { "\xfd" "7zXZ\0", 6, "application/x-xz" },
        { "SQLite format 3\0", 16, "application/vnd.sqlite3" },
        { "\0asm", 4, "application/wasm" },
        { "\x7f" "ELF", 4, "application/x-executable" },
};

const char *files_mime(const char *name, const void *head, size_t head_len)
{
        const char *dot = strrchr(name, '.');
        if (dot && !strchr(dot, '/'))
                for (size_t i = 0; i < ARRAY_LEN(by_extension); i++)
                        if (strcasecmp(dot + 1, by_extension[i].extension) == 0)
                                return by_extension[i].mime;
        for (size_t i = 0; i < ARRAY_LEN(by_magic); i++)
                if (head_len >= by_magic[i].len && memcmp(head, by_magic[i].magic, by_magic[i].len) == 0)
                        return by_magic[i].mime;
        return "application/octet-stream";
}
