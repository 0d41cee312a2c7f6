/*
 * The file of a problem set: the JSON of each problem as it came, and then an index, sorted by the digests of the ids.
 * A reader finds a problem by some reads of 32 bytes, so neither memory nor time grows with the size of the set.
 *
 * The index is in the byte order of the host: the folder of files belongs to one host.
 */
#include "front/grading/gradings.h"
#include "grading/grading.h"

#include "engine/output/files.h"

#include <inttypes.h>
#include <stdio.h>

#define PROBLEM_BYTES_MAX (16 * MIB)       /* of one problem, as of a line of POST /v1/grade */

/* A row of the index. */
struct entry {
        uint8_t digest[16];                /* the begin of the SHA-256 of the id */
        uint64_t at;                       /* offset of the problem */
        uint32_t len;                      /* its bytes */
        uint32_t number;                   /* its line, or its place in the array */
};

enum form { FORM_UNKNOWN, FORM_LINES, FORM_ARRAY, FORM_ARRAY_OVER };

struct problem_writer {
        struct incoming *incoming;         /* NULL before the first problem */
        struct store *store;
        struct store_use *use;
        char tenant[TENANT_MAX + 1];
        struct problem_limits limits;
        enum form form;
        struct buf part;                   /* of the problem that is not whole */
        unsigned depth;                    /* levels of the array's element in `part` */
        bool in_text, escaped;
        uint32_t number;                   /* of the line, or of the element */
        uint64_t at;                       /* bytes of the file so far */
        struct entry *entries;
        size_t n, size;
};

/* ---- names ---- */

bool problem_is_set_name(const char *name)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", more[] = "._-";
        size_t len = strlen(name);
        if (!len || len > PROBLEM_NAME_MAX || !strchr(letters, name[0]))
                return false;
        for (size_t i = 0; i < len; i++)
                if (!strchr(letters, name[i]) && !strchr(more, name[i]))
                        return false;
        return true;
}

int problem_split(const char *text, struct arena *arena, const char **ret_set, const char **ret_id,
        struct csn_error *err)
{
        const char *slash = strchr(text, '/');
        char *set = slash ? arena_copy(arena, text, (size_t)(slash - text)) : NULL;
        if (!set || !problem_is_set_name(set) || !slash[1] || strlen(slash + 1) > PROBLEM_ID_MAX)
                return err_field(err, "/problem",
                        "\"%.80s\" names no problem; a name is SET/ID, the name of a stored set and the id of a problem",
                        text);
        *ret_set = set;
        *ret_id = arena_text(arena, "%s", slash + 1);
        return 0;
}

/* Whether the record is of a data set, by its format: then `problem` is a member of the record. */
static bool is_record(const json_t *json)
{
        const char *format = json_string_value(json_object_get(json, "format"));
        return format && strcmp(format, choices_grade_format.values[grade_format_CAISSON].text) != 0;
}

bool problem_is_named(const json_t *json)
{
        return json_object_get(json, "problem") && !is_record(json);
}

static void digest_of(const char *id, uint8_t ret[static 16])
{
        char hex[65], two[3] = { 0 };
        files_sha256_bytes(id, strlen(id), hex);
        for (size_t i = 0; i < 16; i++) {
                memcpy(two, hex + 2 * i, 2);
                ret[i] = (uint8_t)strtoul(two, NULL, 16);
        }
}

/* The id of a problem, by the names that data sets have for it; NULL: it has none. */
static const char *id_of(const json_t *problem, char number[static 24])
{
        static const char *const names[] = { "id", "task_id", "question_id", "problem_id", "name" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                const json_t *id = json_object_get(problem, names[i]);
                if (json_is_string(id) && json_string_length(id) && !model_digits(id))
                        return json_string_value(id);
                if (json_is_integer(id)) {
                        snprintf(number, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
                        return number;
                }
        }
        return NULL;
}

/* ---- writing ---- */

struct problem_writer *problem_writer_new(struct store *store, const char *tenant, struct store_use *use,
        const struct problem_limits *limits)
{
        struct problem_writer *writer = mem_alloc(sizeof *writer);
        *writer = (struct problem_writer){ .store = store, .use = use, .limits = *limits };
        snprintf(writer->tenant, sizeof writer->tenant, "%s", tenant);
        buf_init(&writer->part, PROBLEM_BYTES_MAX);
        return writer;
}

struct incoming *problem_writer_incoming(struct problem_writer *writer)
{
        return writer->incoming;
}

size_t problem_writer_memory(const struct problem_writer *writer)
{
        return writer->part.size + writer->size * sizeof *writer->entries;
}

void problem_writer_free(struct problem_writer *writer)
{
        if (!writer)
                return;
        incoming_close(writer->incoming);
        buf_done(&writer->part);
        free(writer->entries);
        free(writer);
}

static const char *unit_of(const struct problem_writer *writer)
{
        return writer->form == FORM_LINES ? "line" : "problem";
}

/* Whether a request with this problem would be decoded; any submission does. */
static int check_problem(const struct problem_writer *writer, json_t *problem, struct csn_error *err)
{
        struct grade_request request = { 0 };
        struct arena arena = { 0 };
        const char *format = choices_grade_format.values[writer->limits.format].text;
        if (!json_object_get(problem, "format"))
                json_object_set_new(problem, "format", json_string(format));
        if (problem_is_named(problem))
                return err_field(err, "/problem", "a stored problem cannot name another one; leave the member out");
        json_object_del(problem, "code");
        json_object_set_new(problem, "completion", json_string(""));
        int rc = grading_decode(problem, &arena, &request, err);
        arena_done(&arena);
        return rc;
}

static struct entry *add_entry(struct problem_writer *writer, const char *id, size_t len)
{
        if (writer->n == writer->size) {
                writer->size = writer->size ? 2 * writer->size : 64;
                writer->entries = mem_resize(writer->entries, writer->size * sizeof *writer->entries);
        }
        struct entry *entry = &writer->entries[writer->n++];
        *entry = (struct entry){ .at = writer->at, .len = (uint32_t)len, .number = writer->number };
        digest_of(id, entry->digest);
        return entry;
}

static int write_bytes(struct problem_writer *writer, const void *bytes, size_t len, struct csn_error *err)
{
        if (!writer->incoming &&
                incoming_open_apart(writer->store, writer->tenant, writer->use, &writer->incoming, err) < 0)
                return -err->code;
        if (incoming_add(writer->incoming, bytes, len, err) < 0)
                return -err->code;
        writer->at += len;
        return 0;
}

static int parse_problem(const char *text, size_t len, json_t **ret, struct csn_error *err)
{
        json_error_t where;
        if (model_is_deeper(text, len, MODEL_DEPTH_MAX))
                return err_field(err, "", "the JSON is nested deeper than %d levels", MODEL_DEPTH_MAX);
        if (model_has_many_parts(text, len, PARSE_CASES_VALUES_MAX))
                return err_field(err, "", "the JSON has more than %d values and names", PARSE_CASES_VALUES_MAX);
        *ret = model_load(text, len, &where);
        if (!*ret)
                return err_field(err, "", "not JSON: %s (line %d, column %d)", where.text, where.line, where.column);
        if (json_is_object(*ret))
                return 0;
        json_decref(*ret);
        return err_field(err, "", "a problem is an object");
}

static int check_room(const struct problem_writer *writer, size_t len, struct csn_error *err)
{
        if (writer->n >= writer->limits.count_max)
                err_set(err, CSN_E_INPUT, 0,
                        "the set has more than %" PRIu64 " problems, which problems.set_count allows",
                        writer->limits.count_max);
        else if (len + 1 > writer->limits.bytes_max || writer->at > writer->limits.bytes_max - len - 1)
                err_set(err, CSN_E_INPUT, 0, "the set has more than %" PRIu64 " bytes, which problems.set_bytes allows",
                        writer->limits.bytes_max);
        else
                return 0;
        err->sys = EFBIG;
        return -CSN_E_INPUT;
}

static int add_problem(struct problem_writer *writer, const char *text, size_t len, struct csn_error *err)
{
        json_t *problem = NULL;
        char number[24];
        const char *id;
        int rc = check_room(writer, len, err);
        rc = rc < 0 ? rc : parse_problem(text, len, &problem, err);
        if (rc == 0 && !(id = id_of(problem, number)))
                rc = err_field(err, "/id",
                        "the problem has no id; give it one of id, task_id, question_id, problem_id and name");
        if (rc == 0 && strlen(id) > PROBLEM_ID_MAX)
                rc = err_field(err, "/id", "the id has more than %d bytes", PROBLEM_ID_MAX);
        if (rc == 0)
                add_entry(writer, id, len);
        rc = rc < 0 ? rc : check_problem(writer, problem, err);
        json_decref(problem);
        rc = rc < 0 ? rc : write_bytes(writer, text, len, err);
        return rc < 0 ? rc : write_bytes(writer, "\n", 1, err);
}

/* The problem in `part` is whole. */
static int end_problem(struct problem_writer *writer, struct csn_error *err)
{
        const char *text = writer->part.bytes ? writer->part.bytes : "";
        size_t blank = strspn(text, " \t\r\n");
        writer->number++;
        int rc = blank >= writer->part.len ? 0 : add_problem(writer, text, writer->part.len, err);
        writer->part.len = 0;
        return rc < 0 ? err_wrap(err, "%s %" PRIu32, unit_of(writer), writer->number) : 0;
}

static int add_part(struct problem_writer *writer, const char *bytes, size_t len, struct csn_error *err)
{
        if (buf_add(&writer->part, bytes, len))
                return 0;
        err_set(err, CSN_E_INPUT, 0, "%s %" PRIu32 ": the problem has more than %llu MiB", unit_of(writer),
                writer->number + 1, PROBLEM_BYTES_MAX / MIB);
        err->sys = EFBIG;
        return -CSN_E_INPUT;
}

static int add_lines(struct problem_writer *writer, const char *bytes, size_t len, struct csn_error *err)
{
        while (len) {
                const char *feed = memchr(bytes, '\n', len);
                size_t n = feed ? (size_t)(feed - bytes) : len;
                if (add_part(writer, bytes, n, err) < 0 || (feed && end_problem(writer, err) < 0))
                        return -err->code;
                n += feed != NULL;
                bytes += n;
                len -= n;
        }
        return 0;
}

/* Whether the byte is the last of an element of the array; texts and levels tell. */
static bool ends_element(struct problem_writer *writer, char c)
{
        if (writer->in_text) {
                writer->in_text = writer->escaped || c != '"';
                writer->escaped = !writer->escaped && c == '\\';
                return false;
        }
        writer->in_text = c == '"';
        if (c == '{' || c == '[')
                writer->depth++;
        return (c == '}' || c == ']') && writer->depth && --writer->depth == 0;
}

/* Between elements: "" for blanks and commas. */
static int end_array(struct problem_writer *writer, const char *at, struct csn_error *err)
{
        if (strchr(" \t\r\n,", *at))
                return 0;
        if (*at != ']' || writer->form == FORM_ARRAY_OVER)
                return err_field(err, "", "problem %" PRIu32 ": there is \"%c\" where an object, a comma or the end is due",
                        writer->number + 1, *at);
        writer->form = FORM_ARRAY_OVER;
        return 0;
}

static int add_array(struct problem_writer *writer, const char *bytes, size_t len, struct csn_error *err)
{
        for (size_t i = 0; i < len; i++) {
                if (!writer->depth && (bytes[i] != '{' || writer->form == FORM_ARRAY_OVER)) {
                        if (!bytes[i] || end_array(writer, &bytes[i], err) < 0)
                                return err_field(err, "", "problem %" PRIu32 ": an element of the array is no object",
                                        writer->number + 1);
                        continue;
                }
                size_t from = i;
                bool ended = false;
                while (i < len && !ended)
                        ended = ends_element(writer, bytes[i++]);
                i--;
                if (add_part(writer, bytes + from, i - from + 1, err) < 0 || (ended && end_problem(writer, err) < 0))
                        return -err->code;
        }
        return 0;
}

int problem_writer_add(struct problem_writer *writer, const char *bytes, size_t len, struct csn_error *err)
{
        for (; writer->form == FORM_UNKNOWN && len; bytes++, len--) {
                if (*bytes == '[')
                        writer->form = FORM_ARRAY;
                else if (!strchr(" \t\r\n", *bytes) || !*bytes)
                        break;
                else
                        writer->number += *bytes == '\n';
        }
        if (writer->form == FORM_UNKNOWN && len)
                writer->form = FORM_LINES;
        if (writer->form == FORM_LINES)
                return add_lines(writer, bytes, len, err);
        return add_array(writer, bytes, len, err);
}

/* ---- the index ---- */

static int compare_entries(const void *a, const void *b)
{
        const struct entry *one = a, *other = b;
        int order = memcmp(one->digest, other->digest, sizeof one->digest);
        return order ? order : one->number < other->number ? -1 : 1;
}

static int check_ids(struct problem_writer *writer, struct csn_error *err)
{
        for (size_t i = 1; i < writer->n; i++)
                if (memcmp(writer->entries[i - 1].digest, writer->entries[i].digest, 16) == 0)
                        return err_field(err, "/id", "%s %" PRIu32 " has the id of %s %" PRIu32 "; each id is for one problem",
                                unit_of(writer), writer->entries[i].number, unit_of(writer),
                                writer->entries[i - 1].number);
        return 0;
}

int problem_writer_end(struct problem_writer *writer, struct store_problem_set *ret, struct csn_error *err)
{
        if (writer->form == FORM_ARRAY)
                return err_field(err, "", "the array of problems has no end");
        if (writer->form == FORM_LINES && writer->part.len && end_problem(writer, err) < 0)
                return -err->code;
        if (!writer->n)
                return err_field(err, "", "the body has no problem; send one object a line, or an array of objects");
        qsort(writer->entries, writer->n, sizeof *writer->entries, compare_entries);
        if (check_ids(writer, err) < 0)
                return -err->code;
        ret->index_at = writer->at;
        ret->problems = writer->n;
        if (write_bytes(writer, writer->entries, writer->n * sizeof *writer->entries, err) < 0)
                return -err->code;
        return incoming_seal(writer->incoming, err);
}

/* ---- reading ---- */

static int read_at(int fd, void *bytes, size_t len, uint64_t at, struct csn_error *err)
{
        for (size_t done = 0; done < len;) {
                ssize_t n = pread(fd, (char *)bytes + done, len - done, (off_t)(at + done));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return err_set(err, CSN_E_SYSTEM, n < 0 ? errno : 0, "read a problem set");
                done += (size_t)n;
        }
        return 0;
}

/* 1: found, 0: not there. */
static int find_entry(int fd, const struct store_problem_set *set, const uint8_t digest[static 16], struct entry *ret,
        struct csn_error *err)
{
        uint64_t low = 0, high = set->problems;
        while (low < high) {
                uint64_t middle = low + (high - low) / 2;
                if (read_at(fd, ret, sizeof *ret, set->index_at + middle * sizeof *ret, err) < 0)
                        return -err->code;
                int order = memcmp(digest, ret->digest, sizeof ret->digest);
                if (order == 0)
                        return ret->len <= PROBLEM_BYTES_MAX && ret->at + ret->len <= set->index_at;
                if (order < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return 0;
}

json_t *problem_read(int fd, const struct store_problem_set *set, const char *id, struct csn_error *err)
{
        uint8_t digest[16];
        struct entry entry;
        json_t *json = NULL;
        err->code = 0;
        digest_of(id, digest);
        if (find_entry(fd, set, digest, &entry, err) <= 0)
                return NULL;
        char *text = mem_alloc(entry.len + 1);
        if (read_at(fd, text, entry.len, entry.at, err) == 0)
                parse_problem(text, entry.len, &json, err);
        free(text);
        return json;
}
