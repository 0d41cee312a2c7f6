/*
 * Makes an interactive Bash read the texts of executions in place of its standard input.
 *
 * `enable -f` loads this object; its constructor replaces the shell's function to read a character (bash_input in
 * Bash's input.h, unchanged since Bash 2.0).  So the commands of an execution are the shell's own top-level
 * commands: no command of ours is traced, echoed, trapped or found in a variable, and standard input belongs to
 * the program.  The object has no builtin and stays loaded although `enable` reports the missing builtin.
 *
 * Used parts of Bash are declared here as in Bash.  Only functions found in every C library are used, because the
 * C library is the image's.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lang/bash/reader.h"

/* ---- of Bash ---- */

struct hash_table;
struct var_context;
struct word {
        char *word;
        int flags;
};

/*
 * With the type of a string there is no prompt and no PROMPT_COMMAND: SHOULD_PROMPT() in parse.y, parse_command() in
 * eval.c.
 */
enum { STREAM_STRING = 3 };

extern struct {
        int type;
        char *name;
        union {
                FILE *file;
                char *string;
        } location;
        int (*getter)(void);
        int (*ungetter)(int c);
} bash_input;

enum { DISCARD = 2, EX_BADUSAGE = 2 };

/* Of variables.h: a scope of variables as for a builtin behind assignments. */
#define VC_BLTNENV 0x08

extern int current_command_line_count, current_command_number, last_command_exit_value, line_number, need_here_doc,
        parser_state;
extern volatile sig_atomic_t interrupt_state, terminating_signal;
extern struct hash_table *temporary_env;
extern struct var_context *shell_variables;

int assign_in_env(struct word *word, int flags);
void *bind_variable(const char *name, const char *value, int flags);
char *get_string_value(const char *name);
void add_unwind_protect(void (*cleanup)(char *arg), char *arg);
void notify_and_cleanup(int job);
void parser_error(int line, const char *format, ...);
_Noreturn void jump_to_top_level(int how);
void pop_scope(int is_special);
struct var_context *push_scope(int flags, struct hash_table *table);
void reset_parser(void);
void set_working_directory(char *name);
void termsig_handler(int sig);

/* ---- ours ---- */

static struct {
        pid_t shell, context;
        char *settings;                 /* shared with the other side */
        const char *text;               /* of the current execution, or NULL */
        size_t len, at;
        bool has_streams;
        bool protected;                 /* the shell calls note_thrown() when it discards its work */
        bool thrown;
        struct var_context *scope;      /* of the variables of this execution alone */
        int commands, status;           /* as the execution began */
        int ungot;                      /* a character given back, or EOF */
} reader = { .ungot = EOF };

static char empty[8];

static int open_of_context(int fd, int flags)
{
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)reader.context, fd);
        return open(path, flags | O_CLOEXEC);
}

static void tell(const char *line)
{
        int fd = open_of_context(READER_REPORTS_FD, O_WRONLY);
        size_t len = strlen(line);
        while (fd >= 0 && write(fd, line, len) < 0 && errno == EINTR)
                ;
        if (fd >= 0)
                close(fd);
}

static void leave_scope(void)
{
        if (reader.scope && shell_variables == reader.scope)
                pop_scope(0);
        reader.scope = NULL;
}

/* Called as the shell goes back to its top level, by an error or an interrupt; all functions have been left. */
static void note_thrown(char *arg)
{
        (void)arg;
        reader.protected = false;
        reader.thrown = true;
}

static void protect(void)
{
        if (!reader.protected)
                add_unwind_protect(note_thrown, NULL);
        reader.protected = true;
        reader.thrown = false;
}

/* Change the folder, like `cd`. */
static void enter_folder(char *folder)
{
        const char *before = get_string_value("PWD");
        if (!*folder || (before && strcmp(before, folder) == 0) || chdir(folder) < 0)
                return;
        if (before)
                bind_variable("OLDPWD", before, 0);
        set_working_directory(folder);
        bind_variable("PWD", folder, 0);
}

static void assign(char *assignments)
{
        for (char *next = assignments; *next; next += strlen(next) + 1) {
                struct word word = { .word = next };
                assign_in_env(&word, 0);
        }
        if (!temporary_env)
                return;
        reader.scope = push_scope(VC_BLTNENV, temporary_env);
        temporary_env = NULL;
}

static void read_code(void)
{
        struct stat status;
        int fd = open_of_context(READER_CODE_FD, O_RDONLY);
        reader.text = empty;
        reader.len = reader.at = 0;
        if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0) {
                void *text = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
                if (text != MAP_FAILED) {
                        reader.text = text;
                        reader.len = (size_t)status.st_size;
                }
        }
        if (fd >= 0)
                close(fd);
}

/* Standard error was away while the shell complained about the missing terminal. */
static void take_streams(void)
{
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, 0);
        dup2(3, 2);
        close(3);
        close(null);
        /* The value at the start of `bash -i`. */
        bind_variable("_", BASH, 0);
        reader.has_streams = true;
}

/* Waits for the next execution. */
static void begin(void)
{
        char byte;
        if (!reader.has_streams)
                take_streams();
        ssize_t n;
        int fd = open_of_context(READER_GO_FD, O_RDONLY);
        while ((n = read(fd, &byte, 1)) < 0 && errno == EINTR) {
                if (terminating_signal)
                        termsig_handler(terminating_signal);
        }
        if (n != 1)
                _exit(0);       /* no process is left to ask for an execution */
        close(fd);
        /* Earlier interrupts were for earlier executions. */
        interrupt_state = 0;
        protect();
        read_code();
        char *folder = reader.settings + 1;
        enter_folder(folder);
        assign(folder + strlen(folder) + 1);
        reader.commands = current_command_number;
        reader.status = last_command_exit_value;
        line_number = 1;
        tell("b\n");
}

static void end(void)
{
        char line[32];
        /* Text without a command has no status, and leaves the status of before. */
        bool none = reader.commands == current_command_number && reader.status == last_command_exit_value;
        leave_scope();
        if (reader.len > 0)
                munmap((void *)reader.text, reader.len);
        reader.text = NULL;
        snprintf(line, sizeof line, "e %d\n", none ? 0 : last_command_exit_value);
        tell(line);
}

/* A copy of the shell after an interrupt is no shell, and its parent is to see the interrupt. */
static void end_copy(void)
{
        signal(SIGINT, SIG_DFL);
        kill(getpid(), SIGINT);
        _exit(128 + SIGINT);
}

/* At the beginning of a line: of a command, or of its continuation. */
static void begin_line(bool command)
{
        if (getpid() != reader.shell)
                end_copy();
        notify_and_cleanup(-1);
        if (command && reader.thrown) {
                parser_state = 0;
                if (reader.settings[0])
                        reader.at = reader.len + 1;
                protect();
        }
}

/* A command left open by the text, as by an alias.  At the end of its input the shell would end. */
static void refuse_rest(void)
{
        parser_error(line_number, "syntax error: unexpected end of file");
        last_command_exit_value = EX_BADUSAGE;
        reset_parser();
        jump_to_top_level(DISCARD);
}

/* The next character of the text and a line end behind the last, or EOF. */
static int next_of_text(void)
{
        if (reader.at < reader.len)
                return (unsigned char)reader.text[reader.at++];
        bool is_open = reader.at == reader.len && reader.len > 0 && reader.text[reader.len - 1] != '\n';
        reader.at = reader.len + 1;
        return is_open ? '\n' : EOF;
}

/* Called by Bash for a character of its input. */
static int get(void)
{
        int c = reader.ungot;
        reader.ungot = EOF;
        if (c != EOF)
                return c;
        bash_input.location.string = empty + 4;
        bool is_command = current_command_line_count == 0;
        for (;;) {
                if (!reader.text)
                        begin();
                if (reader.at == 0 || reader.at > reader.len || reader.text[reader.at - 1] == '\n')
                        begin_line(is_command);
                c = next_of_text();
                /* EOF ends a here-document without its last line. */
                if (c != EOF || (!is_command && need_here_doc > 0))
                        return c;
                if (!is_command)
                        refuse_rest();
                end();
        }
}

static int unget(int c)
{
        reader.ungot = c;
        return c;
}

__attribute__((constructor)) static void take_over(void)
{
        reader.shell = getpid();
        reader.context = getppid();
        int settings = open_of_context(READER_SETTINGS_FD, O_RDWR);
        reader.settings = mmap(NULL, READER_SETTINGS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, settings, 0);
        if (settings < 0 || reader.settings == MAP_FAILED)
                _exit(126);
        close(settings);
        bash_input.type = STREAM_STRING;
        bash_input.location.string = empty + 4;
        bash_input.getter = get;
        bash_input.ungetter = unget;
}
