/*
 * The analysis of Bash; for bash*.c.
 *
 *   word.c      the text -> words: quotes, expansions, here-documents
 *   parse.c     words -> commands: the shell's own grammar
 *   variable.c  variables, and the choice between their values
 *   expand.c     what words expand to
 *   walk.c      the program from its first command to its last; functions; code in texts
 *   command.c   commands that run commands: env, xargs, find -exec, sh -c …
 *   effects.c    commands that do something to the system: rm -r /, chmod u+s, cp x /etc …
 *   embedded.c     code for other interpreters: python3 -c, perl -e
 *   awk.c       code for awk
 *
 * The shell is read here and not by a tree-sitter grammar: where a word ends depends on what stands before it
 * (case patterns in $(…), here-documents, [[ =~ ]], extglob), so grammars for it guess, and what they guess wrong
 * is either a valid program that is refused or a command that nobody sees.  This reader says of a program what
 * `bash -n` says of it.  Nesting is bounded by DEPTH_MAX, so recursion is.
 *
 * Values do not follow the flow: a variable may have each value that the program gives it anywhere, and a command
 * is looked at with each of them.  The program is walked in rounds until no variable learns anything new; only the
 * last round tells.
 */
#ifndef POLICY_BASH_H
#define POLICY_BASH_H

#include "policy/analysis/facts.h"

#define DEPTH_MAX 200          /* of commands, words and expansions in each other */
#define OBJECTS_MAX 1000000    /* parts, words and commands of a program */

/* ---- the program (word.c, parse.c) ---- */

enum part_kind {
        PART_TEXT,
        PART_HOLE,             /* of code that was put together at run time: nobody knows what stands here */
        PART_VARIABLE,         /* $x, ${x…} */
        PART_COMMAND,          /* $(…), `…` */
        PART_PROCESS,          /* <(…), >(…) */
        PART_ARITHMETIC,       /* $((…)) */
};

struct part {
        enum part_kind kind;
        bool quoted;
        bool count, indirect;          /* ${#x}, ${!x} */
        char operator[3];              /* "", ":-", "//", … */
        const char *text;              /* TEXT; the name of a VARIABLE */
        size_t len;
        struct word *index;            /* ${x[index]} */
        struct word *operand;          /* ${x:-operand}; of ARITHMETIC: what is in it */
        struct command *body;             /* COMMAND, PROCESS */
        struct part *next;
};

struct word {
        struct part *parts, *last;
        struct assign *array;          /* "x=(…)" as an argument of declare */
        uint32_t start, end;
        struct word *next;
};

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

struct redirect {
        char operator[4];
        bool document;                 /* <<, <<-: target is its text */
        bool other_fd;                 /* N> or {name}> with another N than 0 of input */
        struct word *target;
        uint32_t start, end;
        struct redirect *next, *next_document;
};

enum node_kind {
        NODE_LIST, NODE_AND_OR, NODE_PIPELINE, NODE_SIMPLE, NODE_GROUP, NODE_SUBSHELL, NODE_BRANCHES, NODE_LOOP, NODE_FOR,
        NODE_CASE, NODE_ARITHMETIC, NODE_TEST, NODE_FUNCTION, NODE_COPROC,
};

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

/* What is being read.  A failure sets `at` to the end, so that every loop ends. */
struct bash_reader {
        const char *text;
        size_t len, at;
        struct arena *arena;
        unsigned depth;
        size_t objects, scanned;
        bool extglob;                  /* the program speaks of it */
        bool fixed;                    /* all places are this one: */
        uint32_t fixed_start, fixed_end;
        struct redirect *documents, *last_document;   /* whose text begins with the next line */
        bool failed;
        size_t failed_at;
        const char *why;
};

/* The whole text; what stands before a mistake comes back, too.  Never NULL. */
struct command *bash_parse(struct bash_reader *reader);

void *bash_object(struct bash_reader *r, size_t size);
void bash_fail(struct bash_reader *r, size_t at, const char *why);
void bash_unexpected(struct bash_reader *r);                    /* what stands at r->at */
bool bash_enter(struct bash_reader *r);                         /* and r->depth-- when it returned true */
int bash_peek(const struct bash_reader *r, size_t ahead);       /* -1: the end */
uint32_t bash_start(const struct bash_reader *r, size_t at);
uint32_t bash_end(const struct bash_reader *r, size_t at);

enum ending { END_WORD, END_REGEX, END_QUOTE, END_BRACE, END_BRACKET, END_PAREN, END_GLOB, END_TEXT };
void bash_blanks(struct bash_reader *r);                        /* blanks, continued lines, and a comment */
bool bash_newline(struct bash_reader *r);                       /* one, with the here-documents behind it */
struct word *bash_word(struct bash_reader *r, enum ending ending);   /* NULL: none stands here */
struct word *bash_inside(struct bash_reader *r, enum ending ending, bool quoted);
bool bash_arithmetic_ahead(struct bash_reader *r, size_t at);   /* behind "((": whether "))" ends it */
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

/* Whether a word is exactly this, without quotes. */
bool bash_word_is(const struct word *word, const char *text);

/* ---- values (expand.c, variable.c) ---- */

/* Texts may have NUL bytes: each stands for something that nobody knows. */
struct field {
        const char *text;
        size_t len;
        bool hole;
        bool glob;                     /* it has * ? [ that are not quoted */
        bool many;                     /* none, one or several words */
        bool quoted_hole;              /* what is unknown is one word at most */
        bool substituted;              /* it came out of $(…) */
};

struct fields {
        struct field *list;
        size_t n, size;
};

#define VALUES_MAX 16
#define CHOICES_MAX 64
#define TEXT_MAX (64 * KIB)

struct item {
        const char *key;               /* NULL: by its place */
        size_t key_len;
        struct field value;
        struct item *next;
};

struct values {
        struct field texts[VALUES_MAX];
        size_t n;
        struct item *arrays[4], *last[4];
        size_t arrays_n;
};

struct variable {
        const char *name;
        size_t len;
        const struct function *scope;  /* NULL: global */
        struct values now, all, before;   /* here; in this round; in the one before */
        bool unset;                    /* somewhere */
        bool unset_now;                /* here: what it is now is the empty text */
        struct variable *next;
};

/* What "$@" is. */
struct frame {
        struct fields calls[VALUES_MAX];
        const struct field *zero;      /* "$0"; NULL: unknown */
        size_t n, shift;
        bool shifted;                  /* nobody knows how often */
        bool loop_shifts;              /* somewhere, so that nobody knows it in loops */
};

enum fed { FED_NOT, FED_PIPE, FED_DOCUMENT, FED_PROCESS };

struct function {
        const char *name;
        size_t len;
        uint32_t start, end, called;   /* where it is called first outside of functions; UINT32_MAX */
        bool certain;                  /* defined whatever happens */
        bool unset, exported;          /* somewhere */
        unsigned process;              /* where it is known */
        struct frame frame;
        enum fed fed;                  /* what its standard input is, where it is fed */
        const char *fed_text;          /* if it is always the same */
        size_t fed_len;
        struct edge { struct function *to; bool bomb; uint32_t start, end; struct edge *next; } *edges;
        unsigned seen;
        struct function *next;
};

struct shell {
        struct arena *arena;
        struct facts *facts;
        bool report;                   /* this is the last round */
        bool fixed;                    /* code in a text: all places are that of the text */
        uint32_t start, end;
        struct variable *variables[256];
        struct function *functions, *function;
        struct frame *frame, top;
        size_t choice, total;          /* which of the values that are possible */
        size_t steps, code_bytes;
        unsigned conditional, loops, depth;   /* of where we are */
        bool aliases;                  /* shopt -s expand_aliases */
        bool element;                  /* directly in a pipeline or in the background */
        enum fed fed;                  /* what standard input is */
        const char *fed_text;          /* if it is constant */
        size_t fed_len;
        enum fed exec_fed;             /* what "exec <…" has made of it */
        const char *exec_text;
        size_t exec_len;
        const char *separators;        /* IFS in front of the command; NULL: as it is */
        unsigned process;              /* 0: the program; another shell knows none of its functions */
        bool learned;                  /* something that another round has to use */
        const char *cwd;               /* NULL: unknown */
        bool too_complex;
};

#define STEPS_MAX 500000               /* commands that are looked at, with all their values */

void bash_round(struct shell *sh);     /* begins one */
bool bash_stable(struct shell *sh);    /* whether it learned nothing new */
struct variable *bash_variable(struct shell *sh, const char *name, size_t len, bool local);
const struct values *bash_values(const struct shell *sh, const struct variable *variable);   /* that it may have here */
void bash_set(struct shell *sh, struct variable *variable, struct field value, bool append);
void bash_unset(struct shell *sh, struct variable *variable);
void bash_set_item(struct shell *sh, struct variable *variable, const char *key, size_t key_len, struct field value, bool clear);
/* All fields of the words; and one text, as on the right of "=". */
void bash_expand(struct shell *sh, const struct word *word, struct fields *ret);
struct field bash_text(struct shell *sh, const struct word *word);
void bash_field_add(struct shell *sh, struct fields *fields, struct field field);
struct field bash_field(struct shell *sh, const char *text, size_t len);
size_t bash_pick(struct shell *sh, size_t n);
/* One of n, as the choice that is tried now has it; and a loop through all: while (bash_more(sh, &choices)) … */
struct choices { size_t at, n; };
bool bash_more(struct shell *sh, struct choices *choices);

/* ---- the walk (walk.c) ---- */

void bash_walk(struct shell *sh, const struct command *command);
/* Code in a text; false: it is none.  args: its "$0", "$1" …; NULL: those of here. */
bool bash_embedded(struct shell *sh, const struct field *code, const struct fields *args, uint32_t start, uint32_t end);
/* What "x = 1" and "x++" assign; a NUL byte ends the text. */
void bash_arithmetic(struct shell *sh, const char *text, size_t len, uint32_t start, uint32_t end);
bool bash_output(struct shell *sh, const struct command *command, const char **ret, size_t *ret_len);
void bash_report(struct shell *sh, enum fact_kind kind, const char *name, size_t len, uint32_t start, uint32_t end);

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
/* A file is opened by a redirection (both) or by a command. */
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
