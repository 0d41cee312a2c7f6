/*
 * The analysis of Bash; shared by the files of this folder.
 *
 *   bash.c      the order of the rest, and fork bombs
 *   word.c      the text -> words: quotes, expansions, here-documents
 *   parse.c     words -> commands: the shell's grammar
 *   variable.c  variables with their possible values, and the choice between values
 *   expand.c    the expansions of words
 *   report.c    facts, each reported once
 *   walk.c      the program from its first command to its last; functions; code in texts
 *   command.c   commands that run commands: env, xargs, find -exec, sh -c …
 *   effects.c   commands with an effect on the system: rm -r /, chmod u+s, cp x /etc …
 *   embedded.c  code for other interpreters: python3 -c, perl -e
 *   awk.c       code for awk
 *
 * No tree-sitter grammar is used: the end of a word depends on its context (case patterns in $(…), here-documents, [[
 * =~ ]], extglob), so grammars for Bash guess, and a wrong guess refuses a valid program or hides a command.  This
 * parser accepts exactly the programs that `bash -n` accepts.  Nesting, and with it recursion, is bounded by DEPTH_MAX.
 *
 * Values do not follow the control flow: a variable may have each value that the program assigns anywhere, and a
 * command is analysed with each of them.  The program is walked in rounds until no variable gets a new value; only the
 * last round reports facts.
 */
#ifndef POLICY_BASH_BASH_H
#define POLICY_BASH_BASH_H

#include "policy/analysis/facts.h"

#define DEPTH_MAX 200          /* nesting of commands, words and expansions */
#define OBJECTS_MAX 1000000    /* parts, words and commands of a program */

/* ---- the program (word.c, parse.c) ---- */

enum part_kind {
        PART_TEXT,
        PART_HOLE,             /* in code assembled at run time: unknown text */
        PART_VARIABLE,         /* $x, ${x…} */
        PART_COMMAND,          /* $(…), `…` */
        PART_PROCESS,          /* <(…), >(…) */
        PART_ARITHMETIC,       /* $((…)) */
};

/* A part of a word. */
struct part {
        enum part_kind kind;
        bool quoted;
        bool count, indirect;          /* ${#x}, ${!x} */
        char operator[3];              /* "", ":-", "//", … */
        const char *text;              /* TEXT; VARIABLE: the name */
        size_t len;
        struct word *index;            /* ${x[index]} */
        struct word *operand;          /* ${x:-operand}; ARITHMETIC: the expression */
        struct command *body;          /* COMMAND, PROCESS */
        struct part *next;
};

/* A word, and its place in the program. */
struct word {
        struct part *parts, *last;
        struct assign *array;          /* "x=(…)" as an argument of declare */
        uint32_t start, end;
        struct word *next;
};

/* An assignment, or an item of an array. */
struct assign {
        const char *name;              /* NULL: an item of an array */
        size_t len;
        bool append;
        bool is_array;
        struct word *index, *value;    /* or NULL */
        struct assign *items;
        uint32_t start, end;
        struct assign *next;
};

/* A redirection. */
struct redirect {
        char operator[4];
        bool document;                 /* <<, <<-: target is the text of the here-document */
        bool other_fd;                 /* N> or {name}>, with an N other than 0 for input */
        struct word *target;
        uint32_t start, end;
        struct redirect *next, *next_document;
};

enum node_kind {
        NODE_LIST,
        NODE_AND_OR,
        NODE_PIPELINE,
        NODE_SIMPLE,
        NODE_GROUP,
        NODE_SUBSHELL,
        NODE_BRANCHES,
        NODE_LOOP,
        NODE_FOR,
        NODE_CASE,
        NODE_ARITHMETIC,
        NODE_TEST,
        NODE_FUNCTION,
        NODE_COPROC,
};

/* A command; child is the first command inside, next the next in the same list. */
struct command {
        enum node_kind kind;
        bool background;
        bool no_words;                 /* FOR without "in" */
        uint32_t start, end;
        struct command *child, *last, *next;
        const char *name;              /* FUNCTION, FOR */
        size_t name_len;
        struct assign *assigns;
        struct word *words, *last_word;
        struct redirect *redirects, *last_redirect;
};

/* State of the parser.  A failure sets `at` to the end of the text, so that every loop ends. */
struct bash_reader {
        const char *text;
        size_t len, at;
        struct arena *arena;
        unsigned depth;
        size_t objects, scanned;
        bool extglob;                  /* the program mentions extglob */
        bool fixed;                    /* all places are fixed_start to fixed_end */
        uint32_t fixed_start, fixed_end;
        struct redirect *documents, *last_document;   /* here-documents that begin on the next line */
        bool failed;
        size_t failed_at;
        const char *why;
};

/*
 * Parse the whole text.  After a syntax error the commands before the error are returned.  Never NULL.  Memory: the
 * arena.
 */
struct command *bash_parse(struct bash_reader *reader);

/*
 * Allocate an object from the arena; report a syntax error; test a reader's position.  None of these fails: errors are
 * in the reader.
 */
void *bash_object(struct bash_reader *r, size_t size);
void bash_fail(struct bash_reader *r, size_t at, const char *why);
void bash_unexpected(struct bash_reader *r);              /* syntax error at r->at */
bool bash_enter(struct bash_reader *r); /* count a nesting level; after true, the caller decrements r->depth */
int bash_peek(const struct bash_reader *r, size_t ahead); /* the character at an offset from r->at; -1: the end */
uint32_t bash_start(const struct bash_reader *r, size_t at);
uint32_t bash_end(const struct bash_reader *r, size_t at);

enum ending { END_WORD, END_REGEX, END_QUOTE, END_BRACE, END_BRACKET, END_PAREN, END_GLOB, END_TEXT };
void bash_blanks(struct bash_reader *r);                           /* skip blanks, continued lines and a comment */
bool bash_newline(struct bash_reader *r); /* skip one newline, and the here-documents that follow */
struct word *bash_word(struct bash_reader *r, enum ending ending); /* parse a word; NULL: none here */
struct word *bash_inside(struct bash_reader *r, enum ending ending, bool quoted);
bool bash_arithmetic_ahead(struct bash_reader *r, size_t at);   /* after "((": whether "))" ends the expression */
bool bash_assignment(struct bash_reader *r, bool array_only, struct assign *ret);
const char *bash_ansi(struct arena *arena, const char *text, size_t len, size_t *ret_len);
struct command *bash_list_in(struct bash_reader *r);               /* commands up to a closing word or sign */

static inline bool bash_is_name(int c, bool first)
{
        return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (!first && c >= '0' && c <= '9');
}

static inline bool bash_is_meta(int c)
{
        return c < 0 || (c && strchr(" \t\n;&|()<>", c));
}

/* Whether a word is exactly this text, without quotes. */
bool bash_word_is(const struct word *word, const char *text);

/* ---- values (expand.c, variable.c) ---- */

/* One expanded text.  A NUL byte in a text stands for an unknown part. */
struct field {
        const char *text;
        size_t len;
        bool hole;
        bool glob;                     /* has unquoted * ? [ */
        bool many;                     /* zero, one or several words */
        bool quoted_hole;              /* the unknown part is at most one word */
        bool substituted;              /* result of $(…) */
};

struct fields {
        struct field *list;
        size_t n, size;
};

#define VALUES_MAX 16
#define CHOICES_MAX 64
#define TEXT_MAX (64 * KIB)

/* An item of an array. */
struct item {
        const char *key;               /* NULL: the next index of an indexed array */
        size_t key_len;
        struct field value;
        struct item *next;
};

/* The possible values of a variable.  More than VALUES_MAX become one unknown value. */
struct values {
        struct field texts[VALUES_MAX];
        size_t n;
        struct item *arrays[4], *last[4];
        size_t arrays_n;
};

/* A variable of the program or of a function. */
struct variable {
        const char *name;
        size_t len;
        const struct function *scope;   /* NULL: global */
        struct values now, all, before; /* at this place; in this round; in the previous round */
        bool unset;                     /* unset anywhere in the program */
        bool unset_now;                 /* unset at this place: the value is the empty text */
        struct variable *next;
};

/* The positional parameters "$@" of a function or script. */
struct frame {
        struct fields calls[VALUES_MAX];
        const struct field *zero;      /* "$0"; NULL: unknown */
        size_t n, shift;
        bool shifted;                  /* shift was called an unknown number of times */
        bool loop_shifts;              /* some loop shifts, so the parameters are unknown in loops */
};

/* The source of a command's standard input. */
enum fed { FED_NOT, FED_PIPE, FED_DOCUMENT, FED_PROCESS };

/* A function of the program. */
struct function {
        const char *name;
        size_t len;
        uint32_t start, end, called;   /* called: offset of the first call outside functions; UINT32_MAX: none */
        bool certain;                  /* defined on every path */
        bool unset, exported;          /* anywhere in the program */
        unsigned process;              /* process in which the function is defined */
        struct frame frame;
        enum fed fed;                  /* source of its standard input */
        const char *fed_text;          /* constant standard input, or NULL */
        size_t fed_len;
        struct edge { struct function *to; bool bomb; uint32_t start, end; struct edge *next; } *edges;
        unsigned seen;
        struct function *next;
};

/* State of the walk. */
struct shell {
        struct arena *arena;
        struct facts *facts;
        bool report;                   /* the last round: report facts */
        bool fixed;                    /* code in a text: all places are the text's */
        uint32_t start, end;
        struct variable *variables[256];
        struct function *functions, *function;
        struct frame *frame, top;
        size_t choice, total;          /* number of the combination of values under analysis; number of combinations */
        size_t steps, code_bytes;
        unsigned conditional, loops, depth;     /* nesting at the current place */
        bool aliases;                           /* shopt -s expand_aliases */
        bool element;                           /* direct element of a pipeline, or in the background */
        enum fed fed;                           /* source of standard input */
        const char *fed_text;                   /* constant standard input, or NULL */
        size_t fed_len;
        enum fed exec_fed;             /* the same after "exec <…" */
        const char *exec_text;
        size_t exec_len;
        const char *separators;        /* IFS assigned before the command; NULL: unchanged */
        unsigned process;              /* 0: the program's process; another shell has none of its functions */
        bool learned;                  /* another round is needed */
        const char *cwd;               /* working directory; NULL: unknown */
        bool too_complex;
};

#define STEPS_MAX 500000               /* commands analysed, counted per combination of values; beyond, too_complex */

void bash_round(struct shell *sh);     /* begin a round */
bool bash_stable(struct shell *sh);    /* true: the round learned nothing */
struct variable *bash_variable(struct shell *sh, const char *name, size_t len, bool local);
/* possible values at this place */
const struct values *bash_values(const struct shell *sh, const struct variable *variable);
void bash_set(struct shell *sh, struct variable *variable, struct field value, bool append);
void bash_unset(struct shell *sh, struct variable *variable);
void bash_set_item(struct shell *sh, struct variable *variable, const char *key, size_t key_len, struct field value,
        bool clear);
/* Expand words to fields; expand one word to one text, as on the right of "=".  Memory: the arena. */
void bash_expand(struct shell *sh, const struct word *word, struct fields *ret);
struct field bash_text(struct shell *sh, const struct word *word);
void bash_field_add(struct shell *sh, struct fields *fields, struct field field);
struct field bash_field(struct shell *sh, const char *text, size_t len);
size_t bash_pick(struct shell *sh, size_t n);
/*
 * bash_pick() chooses one of n values for the current combination; `while (bash_more(sh, &choices))` runs through all
 * combinations, at most CHOICES_MAX.
 */
struct choices { size_t at, n; };
bool bash_more(struct shell *sh, struct choices *choices);

/* ---- facts (report.c) ---- */

void bash_report(struct shell *sh, enum fact_kind kind, const char *name, size_t len, uint32_t start, uint32_t end);

/* ---- the walk (walk.c) ---- */

void bash_walk(struct shell *sh, const struct command *command);
/* Analyse code in a text; false: not Bash.  args: its "$0", "$1" …; NULL: the current ones. */
bool bash_embedded(struct shell *sh, const struct field *code, const struct fields *args, uint32_t start, uint32_t end);
/* Apply the assignments in "x = 1" and "x++"; a NUL byte ends the text. */
void bash_arithmetic(struct shell *sh, const char *text, size_t len, uint32_t start, uint32_t end);
bool bash_output(struct shell *sh, const struct command *command, const char **ret, size_t *ret_len);

/* ---- commands (command.c, effects.c, embedded.c, awk.c) ---- */

struct run {
        struct fields words;
        uint32_t start, end;
        bool no_function;
        unsigned depth;
};

void bash_run(struct shell *sh, const struct run *run);
struct function *bash_function(const struct shell *sh, const char *name, size_t len);
void bash_effects(struct shell *sh, const struct run *run, const char *name);
/* Report a file opened by a redirection (both functions) or by a command. */
void bash_reads(struct shell *sh, const struct field *path, uint32_t start, uint32_t end);
void bash_writes(struct shell *sh, const struct field *path, uint32_t start, uint32_t end);
bool bash_embedded_interpreter(struct shell *sh, const struct run *run, const char *name);
void bash_awk(struct shell *sh, const struct run *run);

static inline bool field_is(const struct field *field, const char *text)
{
        return !field->hole && field->text && field->len == strlen(text) && memcmp(field->text, text, field->len) == 0;
}

static inline bool field_begins(const struct field *field, const char *text)
{
        return field->len >= strlen(text) && memcmp(field->text, text, strlen(text)) == 0;
}

#endif
