/*
 * Advice for a model that will try again, from the error reported by a language's runner.
 *
 * Type, message and traceback come over the private channel: printing "NameError" triggers nothing.  A shell reports no
 * error of its commands, so without a report the end of standard error is searched, for network errors only.
 */
#include "engine/output/verdict.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

enum { PYTHON = 1, SCRIPT = 2, SHELL = 4, OTHER = 8, ANY = PYTHON | SCRIPT | SHELL | OTHER };

static unsigned family(const char *language)
{
        static const struct { const char *name; unsigned family; } rows[] = {
                { "python", PYTHON }, { "javascript", SCRIPT }, { "typescript", SCRIPT }, { "bash", SHELL },
        };
        for (size_t i = 0; language && i < ARRAY_LEN(rows); i++)
                if (strcmp(rows[i].name, language) == 0)
                        return rows[i].family;
        return OTHER;
}

#define NOT_DEFINED "Variable or function not defined. Check spelling and scope."
#define NOT_INSTALLED "The module is not installed in this image. Use the standard library or an installed package."
#define NO_END "Recursion depth exceeded. Add base case or switch to iteration."
#define NO_FILE "File not found. Check the name; input files are in the home directory."
#define READ_ONLY "This part of the file system is read-only. Write below the home directory or /tmp."
#define NOT_PERMITTED "Not permitted in the sandbox. Write below the home directory or /tmp."

static const struct {
        unsigned families;
        const char *type, *advice;
} types[] = {
        { PYTHON, "NameError", NOT_DEFINED },
        { PYTHON, "UnboundLocalError", NOT_DEFINED },
        { SCRIPT, "ReferenceError", NOT_DEFINED },
        { PYTHON, "TypeError", "Wrong type passed to function. Check argument types." },
        { SCRIPT, "TypeError",
                "A value is undefined or null, or is no function or object of the kind that is used here. Check it before its use." },
        { PYTHON, "ValueError", "Invalid value for operation. Check parameter constraints." },
        { SCRIPT, "RangeError", "Invalid value for operation. Check parameter constraints." },
        { PYTHON, "UnicodeDecodeError",
                "The bytes are not in this encoding. Name the encoding, or read the file in binary mode." },
        { PYTHON, "IndexError", "List index out of range. Check bounds." },
        { PYTHON, "KeyError", "Dictionary key not found. Check key existence." },
        { PYTHON, "AttributeError", "Object has no such attribute. Check method/attribute name." },
        { PYTHON, "ImportError", "Missing import. Add 'import X' or 'from X import Y'." },
        { PYTHON, "ModuleNotFoundError", NOT_INSTALLED },
        { PYTHON, "SyntaxError", "Python syntax error. Check indentation, brackets, colons." },
        { SCRIPT, "SyntaxError",
                "A text that was parsed while the program ran (JSON, a regular expression, code) is malformed. Check that text." },
        { PYTHON, "IndentationError", "Indentation error. Use the same number of blanks for each line of a block." },
        { PYTHON, "TabError", "Indentation mixes tabs and blanks. Use blanks only." },
        { PYTHON, "ZeroDivisionError", "Division by zero. Add guard for zero denominator." },
        { PYTHON, "RecursionError", NO_END },
        { ANY, "TimeoutError", "Code timed out. Check for infinite loops or optimize." },
        { ANY, "MemoryError", "Out of memory. Process the data in parts, or use generators." },
        { PYTHON, "FileNotFoundError", NO_FILE },
        { PYTHON, "PermissionError", NOT_PERMITTED },
        { ANY, "AssertionError", "An assertion failed. Check the logic for the case that it names." },
        { PYTHON, "StopIteration", "The iterator is exhausted. Check for the end before next()." },
};

/*
 * Node has a message, or the system's error number, for errors with a type in Python; OSError itself covers many
 * errors.
 */
static const struct {
        const char *message, *advice;
} messages[] = {
        { "Maximum call stack size exceeded", NO_END },
        { "Cannot find module '.", NO_FILE },
        { "Cannot find module '/", NO_FILE },
        { "Cannot find module '", NOT_INSTALLED },
        { "Cannot find package '", NOT_INSTALLED },
};

static const struct {
        int number;
        const char *advice;
} numbers[] = { { ENOENT, NO_FILE }, { EACCES, NOT_PERMITTED }, { EPERM, NOT_PERMITTED }, { EROFS, READ_ONLY } };

const char *feedback_for_type(const char *language, const char *type)
{
        for (size_t i = 0; type && i < ARRAY_LEN(types); i++)
                if (types[i].families & family(language) && strcmp(types[i].type, type) == 0)
                        return types[i].advice;
        return NULL;
}

/* ---- the network ---- */

#define NO_NETWORK "There is no network in this sandbox. Work with the input files, or ask for a run with a network."
#define NO_LISTENER "Nothing listens at that address: there is no network in this sandbox, only what the program itself starts on 127.0.0.1."

/*
 * Texts of the C library, and of clients with texts of their own, for a name or a host that cannot be reached.  A
 * refusal comes last: a client that tried more than one address names a refusal beside the other errors.
 */
static const struct {
        const char *words, *advice;
} unreached[] = {
        { "Temporary failure in name resolution", NO_NETWORK }, /* gai_strerror(3): EAI_AGAIN */
        { "Name or service not known", NO_NETWORK },            /* EAI_NONAME */
        { "No address associated with hostname", NO_NETWORK },  /* EAI_NODATA */
        { "Name does not resolve", NO_NETWORK },                /* the same in musl */
        { "Network is unreachable", NO_NETWORK },               /* strerror(3): ENETUNREACH */
        { "getaddrinfo EAI_", NO_NETWORK },                     /* Node */
        { "getaddrinfo ENOTFOUND", NO_NETWORK }, { "queryA ECONNREFUSED", NO_NETWORK }, { "ENETUNREACH", NO_NETWORK },
        { "Could not resolve host", NO_NETWORK }, /* curl, ssh, git */
        { "unable to resolve host", NO_NETWORK }, /* wget */
        { "fetch failed", NO_NETWORK },           /* Node's fetch, which names the reason in `cause` alone */
        { "Connection refused", NO_LISTENER }, { "ECONNREFUSED", NO_LISTENER },
        { "Couldn't connect to server", NO_LISTENER }, /* curl */
};

/* Clients without a message in quiet mode, and their exit statuses: curl(1), wget(1). */
static const struct {
        const char *command;
        int status;
} quiet_clients[] = { { "curl", 6 }, { "curl", 7 }, { "wget", 4 } };

static const char *unreached_in(const char *text, size_t len, const char *found)
{
        for (size_t i = 0; text && i < ARRAY_LEN(unreached) && unreached[i].advice != found; i++)
                if (memmem(text, len, unreached[i].words, strlen(unreached[i].words)))
                        return unreached[i].advice;
        return found;
}

static bool has_word(const struct bytes *text, const char *word)
{
        size_t len = strlen(word);
        const char *end = text->bytes + text->len;
        for (const char *at = text->bytes; at && (at = memmem(at, (size_t)(end - at), word, len)); at += len)
                if ((at == text->bytes || !isalnum((unsigned char)at[-1])) &&
                        (at + len == end || !isalnum((unsigned char)at[len])))
                        return true;
        return false;
}

/* The exit status of a client as the program's last command, or in Python's CalledProcessError. */
static bool ended_as_client(const struct complaint *of)
{
        const char *said = of->message ? of->message : "";
        const struct bytes message = { (char *)(uintptr_t)said, strlen(said) };
        char status[40];
        for (size_t i = 0; i < ARRAY_LEN(quiet_clients); i++) {
                snprintf(status, sizeof status, "exit status %d.", quiet_clients[i].status);
                if (of->type ? strcmp(of->type, "CalledProcessError") == 0 && strstr(said, status) &&
                                        has_word(&message, quiet_clients[i].command)
                             : of->exit_status == quiet_clients[i].status &&
                                        has_word(&of->code, quiet_clients[i].command))
                        return true;
        }
        return false;
}

/*
 * A script that catches the failure of a quiet client, and fails itself: with an address outside the client cannot have
 * succeeded.
 */
static bool asks_outside(const struct bytes *code)
{
        static const char *const inside[] = { "localhost", "127.", "[::1]", "$" };
        const char *end = code->bytes + code->len;
        bool outside = false;
        for (const char *at = code->bytes; at && (at = memmem(at, (size_t)(end - at), "://", 3)) && !outside; at += 3) {
                outside = true;
                for (size_t i = 0; i < ARRAY_LEN(inside); i++)
                        if ((size_t)(end - at - 3) >= strlen(inside[i]) &&
                                memcmp(at + 3, inside[i], strlen(inside[i])) == 0)
                                outside = false;
        }
        return outside && (has_word(code, "curl") || has_word(code, "wget"));
}

#define PRINTED_MAX 4096       /* of the end of standard error */

static const char *network_advice(const struct complaint *of)
{
        const char *found = NULL;
        size_t from = of->printed.len > PRINTED_MAX ? of->printed.len - PRINTED_MAX : 0;
        if (!of->type)
                found = unreached_in(of->printed.bytes ? of->printed.bytes + from : NULL, of->printed.len - from, NULL);
        if (of->type && of->message)
                found = unreached_in(of->message, strlen(of->message), NULL);
        /* The lines of chained errors; frames, and the program's text among the frames, begin with a blank. */
        for (size_t i = 0; of->type && i < of->traceback_n; i++)
                if (of->traceback[i][0] != ' ')
                        found = unreached_in(of->traceback[i], strlen(of->traceback[i]), found);
        if (!found && (ended_as_client(of) || (family(of->language) & SHELL && asks_outside(&of->code))))
                found = NO_NETWORK;
        return found;
}

/* A shell command only prints strerror(3) of EROFS. */
static const char *printed_advice(const struct complaint *of)
{
        static const char words[] = "Read-only file system";
        size_t from = of->printed.len > PRINTED_MAX ? of->printed.len - PRINTED_MAX : 0;
        bool found = of->printed.bytes &&
                memmem(of->printed.bytes + from, of->printed.len - from, words, strlen(words));
        return found ? READ_ONLY : NULL;
}

const char *feedback_for_fences(const struct bytes *code)
{
        bool fenced = code->len >= 3 &&
                (memcmp(code->bytes, "```", 3) == 0 || memmem(code->bytes, code->len, "\n```", 4));
        return fenced ? "The text has fences of Markdown (```): send the program alone, or set extract to last_fence."
                      : NULL;
}

const char *feedback_for(const struct complaint *of)
{
        const char *advice = of->no_network ? network_advice(of) : NULL;
        for (size_t i = 0; !advice && of->message && family(of->language) == SCRIPT && i < ARRAY_LEN(messages); i++)
                if (strncmp(of->message, messages[i].message, strlen(messages[i].message)) == 0)
                        advice = messages[i].advice;
        advice = advice ? advice : feedback_for_type(of->language, of->type);
        bool numbered = of->type && (family(of->language) == SCRIPT || strcmp(of->type, "OSError") == 0);
        for (size_t i = 0; !advice && numbered && i < ARRAY_LEN(numbers); i++)
                if (numbers[i].number == of->error_errno)
                        advice = numbers[i].advice;
        return advice || of->type ? advice : printed_advice(of);
}
