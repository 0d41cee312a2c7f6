/*
 * What code in a sandbox may call outside, for Bash:
 *
 *     tool weather --city Oslo        call it; its result is printed
 *     tool weather '{"city": "Oslo"}' the same, and `-` reads the object from standard input
 *     tool --list                     what there is
 *     tool --help weather             what it takes
 *
 * A stub, as tools.py beside it is.  Linked statically, because it runs in whatever image there is.
 */
#include "base/base.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#define HEAD 4
#define ANSWER_MAX (32 * MIB)
#define INPUT_MAX (32 * MIB)
#define SOCKET "/dev/shm/.caisson-tools"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

static _Noreturn void die(int status, const char *what, const char *name)
{
        fprintf(stderr, "tool: %s%s%s\n", what, name ? ": " : "", name ? name : "");
        exit(status);
}

/* ---- asking ---- */

static size_t receive(int fd, char *bytes, size_t size)
{
        size_t at = 0;
        while (at < size) {
                ssize_t n = recv(fd, bytes + at, size - at, 0);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break;
                at += (size_t)n;
        }
        return at;
}

static int connect_outside(void)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        const char *path = getenv("CAISSON_TOOLS");
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        snprintf(address.sun_path, sizeof address.sun_path, "%s", path && path[0] ? path : SOCKET);
        if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
                die(EXIT_FAILED, "Tools cannot be reached", strerror(errno));
        return fd;
}

/* The answer to a request, whose reference is taken. */
static json_t *ask(json_t *request)
{
        char *text = json_dumps(request, JSON_COMPACT);
        uint8_t head[HEAD];
        size_t size = 0;
        if (!text)
                die(EXIT_USAGE, "the arguments cannot be written as JSON", NULL);
        auto_fd fd = connect_outside();
        for (size_t i = 0; i < HEAD; i++)
                head[i] = (uint8_t)(strlen(text) >> 8 * i);
        /* What is refused by its length has an answer all the same. */
        if (send(fd, head, HEAD, MSG_NOSIGNAL) == HEAD)
                for (size_t at = 0; at < strlen(text);) {
                        ssize_t n = send(fd, text + at, strlen(text) - at, MSG_NOSIGNAL);
                        if (n < 0 && errno != EINTR)
                                break;
                        at += n < 0 ? 0 : (size_t)n;
                }
        if (receive(fd, (char *)head, HEAD) < HEAD)
                die(EXIT_FAILED, "Tools cannot be reached", "the connection was ended");
        for (size_t i = 0; i < HEAD; i++)
                size |= (size_t)head[i] << 8 * i;
        char *bytes = size <= ANSWER_MAX ? mem_alloc(size + 1) : NULL;
        json_t *answer =
                bytes && receive(fd, bytes, size) == size ? json_loadb(bytes, size, JSON_ALLOW_NUL, NULL) : NULL;
        if (!answer)
                die(EXIT_FAILED, "Tools cannot be reached", "what came is no answer");
        free(bytes);
        free(text);
        json_decref(request);
        return answer;
}

static json_t *result_of(json_t *answer)
{
        if (!json_is_true(json_object_get(answer, "ok"))) {
                const char *error = json_string_value(json_object_get(answer, "error"));
                die(EXIT_FAILED, error ? error : "the call failed", NULL);
        }
        return json_object_get(answer, "result");
}

static json_t *info_of(const char *name)
{
        return ask(json_pack("{s:s, s:s}", "op", "info", "tool", name));
}

/* A text as it is, everything else as JSON. */
static void print(json_t *value)
{
        if (json_is_string(value))
                fwrite(json_string_value(value), 1, json_string_length(value), stdout);
        else
                json_dumpf(value, stdout, JSON_ENCODE_ANY);
        putchar('\n');
}

/* ---- arguments ---- */

static bool has_type(const json_t *schema, const char *type)
{
        json_t *given = json_object_get(schema, "type"), *one, *alternatives = json_object_get(schema, "anyOf");
        size_t i;
        if (json_is_string(given))
                return strcmp(json_string_value(given), type) == 0;
        json_array_foreach(given, i, one)
                if (json_is_string(one) && strcmp(json_string_value(one), type) == 0)
                        return true;
        json_array_foreach(alternatives, i, one) if (json_is_object(one) &&
                json_is_string(json_object_get(one, "type")) &&
                strcmp(json_string_value(json_object_get(one, "type")), type) == 0) return true;
        return false;
}

/* A word as the schema wants it.  What does not fit stays a text, and the answer says what is wrong with it. */
static json_t *value_of(const json_t *schema, const char *word)
{
        static const struct { const char *type; unsigned kinds; } types[] = {
                { "integer", 1U << JSON_INTEGER },
                { "number", 1U << JSON_INTEGER | 1U << JSON_REAL },
                { "boolean", 1U << JSON_TRUE | 1U << JSON_FALSE },
                { "null", 1U << JSON_NULL },
                { "object", 1U << JSON_OBJECT },
                { "array", 1U << JSON_ARRAY },
        };
        json_t *value = json_loads(word, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        for (size_t i = 0; value && i < ARRAY_LEN(types); i++)
                if (types[i].kinds >> json_typeof(value) & 1 && has_type(schema, types[i].type))
                        return value;
        json_decref(value);
        value = json_string(word);
        if (!value)
                die(EXIT_USAGE, "an argument is no UTF-8", NULL);
        return value;
}

/* --max-results is max_results where there is no other. */
static char *property_of(const json_t *properties, const char *option, size_t len)
{
        char *name = mem_copy(option, len);
        if (json_object_get(properties, name))
                return name;
        char *other = mem_copy(option, len);
        for (char *c = other; *c; c++)
                if (*c == '-')
                        *c = '_';
        bool known = json_object_get(properties, other) != NULL;
        free(known ? name : other);
        return known ? other : name;
}

static void set_argument(json_t *arguments, const char *name, const json_t *schema, const char *word)
{
        json_t *value = value_of(schema, word), *before = json_object_get(arguments, name);
        if (has_type(schema, "array") && !json_is_array(value)) {
                json_decref(value);
                value = value_of(json_object_get(schema, "items"), word);
                if (json_is_array(before)) {
                        json_array_append_new(before, value);
                        return;
                }
                value = json_pack("[o]", value);
        }
        json_object_set_new(arguments, name, value);
}

static void take_object(json_t *arguments, const char *text, size_t len)
{
        json_t *object = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
        if (!json_is_object(object))
                die(EXIT_USAGE, "arguments are --NAME VALUE, or one JSON object", NULL);
        json_object_update(arguments, object);
        json_decref(object);
}

static void take_input(json_t *arguments)
{
        struct buf input;
        char piece[4096];
        size_t n;
        buf_init(&input, INPUT_MAX);
        while ((n = fread(piece, 1, sizeof piece, stdin)) > 0)
                if (!buf_add(&input, piece, n))
                        die(EXIT_USAGE, "standard input is too long", NULL);
        take_object(arguments, input.bytes ? input.bytes : "", input.len);
        buf_done(&input);
}

static json_t *take_arguments(const char *tool, char **words)
{
        json_t *arguments = json_object(), *info = NULL, *properties = NULL;
        for (; *words; words++) {
                const char *word = *words;
                if (strcmp(word, "-") == 0) {
                        take_input(arguments);
                        continue;
                }
                if (strncmp(word, "--", 2) != 0 || !word[2]) {
                        take_object(arguments, word, strlen(word));
                        continue;
                }
                if (!info) {
                        info = info_of(tool);
                        properties = json_object_get(json_object_get(result_of(info), "parameters"), "properties");
                }
                const char *equals = strchr(word, '=');
                char *name = property_of(properties, word + 2, equals ? (size_t)(equals - word - 2) : strlen(word + 2));
                const json_t *schema = json_object_get(properties, name);
                bool alone = !equals && (!words[1] || strncmp(words[1], "--", 2) == 0);
                if (alone && !has_type(schema, "boolean"))
                        die(EXIT_USAGE, "it needs a value", word);
                if (equals)
                        set_argument(arguments, name, schema, equals + 1);
                else if (alone ||
                        (has_type(schema, "boolean") && strcmp(words[1], "true") != 0 &&
                                strcmp(words[1], "false") != 0))
                        json_object_set_new(arguments, name, json_true());
                else
                        set_argument(arguments, name, schema, *++words);
                free(name);
        }
        json_decref(info);
        return arguments;
}

/* ---- what can be asked ---- */

static int list(void)
{
        json_t *answer = ask(json_pack("{s:s}", "op", "list")), *one;
        size_t i;
        json_array_foreach(json_object_get(answer, "tools"), i, one) {
                print(json_object_get(one, "name"));
        }
        json_decref(answer);
        return 0;
}

static int help(const char *name)
{
        if (!name) {
                puts("usage: tool NAME [--ARGUMENT VALUE]... | tool NAME JSON | tool NAME - | tool --list | tool --help NAME");
                return list();
        }
        json_t *answer = info_of(name), *info = result_of(answer), *parameters = json_object_get(info, "parameters"),
               *schema, *required;
        const char *argument;
        size_t i;
        printf("%s\n", json_string_value(json_object_get(info, "name")));
        print(json_object_get(info, "description"));
        json_object_foreach(json_object_get(parameters, "properties"), argument, schema) {
                const char *type = json_string_value(json_object_get(schema, "type")),
                           *about = json_string_value(json_object_get(schema, "description"));
                bool needed = false;
                json_array_foreach(json_object_get(parameters, "required"), i, required) {
                        needed = needed ||
                                (json_is_string(required) && strcmp(json_string_value(required), argument) == 0);
                }
                printf("  --%s%s%s%s%s%s\n", argument, type ? " " : "", type ? type : "", needed ? " (required)" : "",
                        about ? "  " : "", about ? about : "");
        }
        json_decref(answer);
        return 0;
}

static int call(const char *name, char **words)
{
        json_t *answer =
                ask(json_pack("{s:s, s:s, s:o}", "op", "call", "tool", name, "arguments", take_arguments(name, words)));
        print(result_of(answer));
        json_decref(answer);
        return fflush(stdout) == 0 ? 0 : EXIT_FAILED;
}

int main(int argc, char **argv)
{
        if (argc < 2)
                die(EXIT_USAGE, "tool NAME [--ARGUMENT VALUE]..., tool --list, or tool --help NAME", NULL);
        if (strcmp(argv[1], "--list") == 0)
                return list();
        if (strcmp(argv[1], "--help") == 0)
                return help(argv[2]);
        return call(argv[1], argv + 2);
}
