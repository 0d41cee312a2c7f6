/* Our terminal in raw mode, and back at any end but SIGKILL. */
#include "front/remote/remote.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

static struct termios before;
static volatile sig_atomic_t is_raw;

void terminal_restore(void)
{
        if (is_raw)
                tcsetattr(STDIN_FILENO, TCSANOW, &before);
        is_raw = 0;
}

/* tcsetattr(3) may be called from a handler, signal-safety(7). */
static void on_death(int number)
{
        terminal_restore();
        raise(number);                     /* SA_RESETHAND: this time the signal ends us */
}

bool terminal_raw(void)
{
        static const int deaths[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS, SIGXCPU };
        static bool prepared;
        struct termios raw;
        if (tcgetattr(STDIN_FILENO, &raw) < 0)
                return false;
        if (!prepared) {
                const struct sigaction action = { .sa_handler = on_death, .sa_flags = (int)SA_RESETHAND };
                for (size_t i = 0; i < ARRAY_LEN(deaths); i++)
                        sigaction(deaths[i], &action, NULL);
                atexit(terminal_restore);
                prepared = true;
        }
        if (!is_raw)
                before = raw;
        cfmakeraw(&raw);
        is_raw = 1;
        return tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

bool terminal_size(unsigned *ret_rows, unsigned *ret_columns)
{
        struct winsize size;
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col) {
                        *ret_rows = size.ws_row;
                        *ret_columns = size.ws_col;
                        return true;
                }
        return false;
}
