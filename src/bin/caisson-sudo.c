/*
 * caisson-sudo: the program `sudo` inside a sandbox with root; static, so that it needs nothing of an image.  It reads
 * sudo's options, sends the command to the guest (guest/sudo_socket.c), passes signals on, and exits as the command
 * does.  It has no right of its own.
 */
#include "wire/guest_protocol.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT_PATH "/opt/caisson/installs/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct command {
        const char *user;
        bool login;                  /* a shell where there is no command */
        char **words;                /* ends with NULL; inside of argv */
};

static int listener = -1;

static _Noreturn void refuse(const char *text, const char *what)
{
        fprintf(stderr, "sudo: %s%s\n", text, what);
        exit(1);
}

static bool is_one_of(const char *word, const char *const *words)
{
        for (; *words; words++)
                if (strcmp(word, *words) == 0)
                        return true;
        return false;
}

static bool starts_with(const char *word, const char *const *words)
{
        for (; *words; words++)
                if (strncmp(word, *words, strlen(*words)) == 0)
                        return true;
        return false;
}

/* sudo(8): options with a value, of a shell, those that only ask for a password, and flags without an effect here. */
static void read_options(struct command *command)
{
        static const char *const valued[] = { "-u", "--user", "-g", "--group", "-p", "--prompt", "-C", "-h", "--host",
                NULL };
        static const char *const shells[] = { "-i", "--login", "-s", "--shell", NULL };
        static const char *const checks[] = { "-v", "-k", "-K", "--validate", "--reset-timestamp", NULL };
        static const char *const flags[] = { "--preserve-env", "--non-interactive", "--set-home", "--stdin", NULL };
        while (*command->words && (*command->words)[0] == '-') {
                const char *option = *command->words++;
                if (strcmp(option, "--") == 0)
                        return;
                if (is_one_of(option, valued) && *command->words) {
                        const char *value = *command->words++;
                        if (strcmp(option, "-u") == 0 || strcmp(option, "--user") == 0)
                                command->user = value;
                } else if (strncmp(option, "--user=", 7) == 0) {
                        command->user = option + 7;
                } else if (is_one_of(option, shells)) {
                        command->login = true;
                } else if (is_one_of(option, checks)) {
                        exit(0);
                } else if (option[strspn(option, "-nEHSbPA")] && !starts_with(option, flags)) {
                        refuse(option, " is not known here");
                }
        }
}

static void read_variables(struct command *command)
{
        for (; *command->words && strchr(*command->words, '=') && (*command->words)[0] != '='; command->words++)
                if (putenv(*command->words) != 0)
                        refuse("the environment is full", "");
}

static void set_root_environment(void)
{
        static const struct {
                const char *name, *value;
        } variables[] = { { "HOME", "/root" }, { "USER", "root" }, { "LOGNAME", "root" }, { "SUDO_USER", "user" },
                { "SUDO_UID", "1000" }, { "SUDO_GID", "1000" }, { "PATH", ROOT_PATH } };
        for (size_t i = 0; i < ARRAY_LEN(variables); i++)
                if (setenv(variables[i].name, variables[i].value, 1) < 0)
                        refuse("the environment is full", "");
}

static _Noreturn void become(char *const *words)
{
        execvp(words[0], words);
        fprintf(stderr, "sudo: %s: %s\n", words[0], errno == ENOENT ? "command not found" : strerror(errno));
        exit(127);
}

static void add_text(struct buf *request, const char *text)
{
        buf_add(request, text, strlen(text) + 1);
}

static void send_command(char *const *words)
{
        static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = GUEST_SUDO_SOCKET };
        static const int streams[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };
        char folder[PATH_MAX], count[24];
        struct buf request;
        size_t n = 0;
        while (words[n])
                n++;
        snprintf(count, sizeof count, "%zu", n);
        buf_init(&request, 16 * MIB);
        add_text(&request, getcwd(folder, sizeof folder) ? folder : "/");
        add_text(&request, count);
        for (; *words; words++)
                add_text(&request, *words);
        for (char **variable = environ; *variable; variable++)
                add_text(&request, *variable);
        listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (listener < 0 || connect(listener, (const struct sockaddr *)&address, sizeof address) < 0 ||
                wire_send(listener, request.bytes, request.len, streams, ARRAY_LEN(streams)) < 0)
                refuse("there is no root to be had: ", strerror(errno));
        buf_done(&request);
}

static void on_signal(int number)
{
        const uint8_t byte = (uint8_t)number;
        int saved = errno;
        send(listener, &byte, 1, MSG_NOSIGNAL);
        errno = saved;
}

static const int passed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

/* A signal for the command may come before send_command() returns: it waits until then, and is passed on. */
static void send_with_signals(char *const *words)
{
        const struct sigaction action = { .sa_handler = on_signal };
        sigset_t set, before;
        sigemptyset(&set);
        for (size_t i = 0; i < ARRAY_LEN(passed_on); i++)
                sigaddset(&set, passed_on[i]);
        sigprocmask(SIG_BLOCK, &set, &before);
        for (size_t i = 0; i < ARRAY_LEN(passed_on); i++)
                sigaction(passed_on[i], &action, NULL);
        send_command(words);
        sigprocmask(SIG_SETMASK, &before, NULL);
}

static int await_end(void)
{
        char text[100];
        ssize_t len;
        do
                len = recv(listener, text, sizeof text - 1, 0);
        while (len < 0 && errno == EINTR);
        if (len <= 0)
                refuse("the sandbox ends", "");
        text[len] = 0;
        int status = (int)strtol(text, NULL, 10);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A closed stream would otherwise be the socket, and go to the command. */
static void open_streams(void)
{
        int fd;
        do
                fd = open("/dev/null", O_RDWR);
        while (fd >= 0 && fd <= STDERR_FILENO);
        fd_close(&fd);
}

int main(int argc, char **argv)
{
        open_streams();
        char bash[] = "/bin/bash", *const shell[] = { bash, NULL };
        struct command command = { .user = "root", .words = argv + (argc > 0) };
        read_options(&command);
        read_variables(&command);
        if (!*command.words && !command.login)
                refuse("say what to run", "");
        char *const *words = *command.words ? command.words : shell;
        bool is_user = strcmp(command.user, "user") == 0 || strcmp(command.user, "#1000") == 0;
        if (is_user)
                become(words);
        if (strcmp(command.user, "root") != 0 && strcmp(command.user, "#0") != 0)
                refuse("unknown user ", command.user);
        set_root_environment();
        if (getuid() == 0)
                become(words);
        send_with_signals(words);
        return await_end();
}
