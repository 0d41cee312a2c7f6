# shellcheck shell=bash
# Runs the prelude in the program's own shell, which reads this file as its $BASH_ENV before the program.
#
# A prelude fails by ending the shell: `exit`, or a command under `set -e`.  Nothing of ours is left for the program but
# what the prelude has defined.

# shellcheck disable=SC2317    # a trap calls __caisson_failed

unset -v BASH_ENV

__caisson_failed() {
        local status=$? channel=$__caisson_channel
        trap - EXIT
        # shellcheck source=src/lang/bash/report.sh
        . /opt/caisson/bash/report.sh
        report_prelude ExitStatus "exit status $status" null
        exit $(( status ? status : 1 ))
}

__caisson_forget() {
        # The prelude may have set a trap of its own.
        [[ $(trap -p EXIT) != *__caisson_failed* ]] || trap - EXIT
        unset -f __caisson_failed __caisson_forget
        eval "exec $__caisson_channel>&-"
        unset -v __caisson_prelude __caisson_channel
        SECONDS=0
}

export -n __caisson_prelude __caisson_channel
trap __caisson_failed EXIT
# shellcheck disable=SC1090    # the prelude of a request
. "$__caisson_prelude"
__caisson_forget
