# shellcheck shell=bash
# Waiting for a program: the program's own shell, started ahead of time (docs/protocols/runner-channel.md).
#
#     BASH_ENV=worker.sh bash MAINFILE
#
# Bash reads $BASH_ENV before it opens the script.  So here is the place to wait, and what follows is a shell like any
# other.  It has to forget all that is said here: nothing may be declared that __caisson_forget does not know.

# shellcheck source=src/lang/bash/report.sh
. "${BASH_SOURCE[0]%/*}/report.sh"

__caisson_forget() {
        unset -f send json_string report_syntax check_syntax check_prelude report_prelude say_hello
        unset -f __caisson_malformed __caisson_is_sound __caisson_wait __caisson_forget
        SECONDS=0
}

__caisson_malformed() {
        echo "worker.sh: $1" >&2
        exit 70
}

# Is $main certainly without a syntax error?  A copy of this shell can tell sooner than a new one: what follows a
# `set -n` is read and not run.  Where it sees a mistake or breaks, `bash -n` has the last word, and finds the words.
__caisson_is_sound() (
        # Status 0 is a NUL: eval would not see what is behind it.
        ! IFS= read -r -d '' text < "$main" && eval "set -n"$'\n'"$text"
)

__caisson_wait() {
        local main=$0 channel exported fields name
        mapfile -t exported <<< "$(compgen -e)"
        printf R >&4
        mapfile -t -d '' -u 4 fields
        exec 4>&-
        (( ${#fields[@]} > 0 )) || exit 0
        [[ ${fields[0]} == 2 && ${fields[2]-} == "$main" ]] || __caisson_malformed "can only run $main, without arguments"
        [[ ${fields[3]-} == $(( ${#fields[@]} - 4 )) ]] || __caisson_malformed 'what came over descriptor 4 is no program'

        for name in "${exported[@]}"; do
                # These Bash makes itself.
                [[ $name == @(PWD|OLDPWD|SHLVL|_) ]] || unset -v "$name"
        done
        (( ${#fields[@]} == 4 )) || declare -gx -- "${fields[@]:4}"

        if [[ -S /dev/fd/3 ]]; then
                exec {channel}>&3-
        else
                exec {channel}>/dev/null
        fi
        say_hello
        # In braces, for what this shell would say of a copy that was killed.
        { __caisson_is_sound; } 2>/dev/null || check_syntax
        send STARTED
        exec {channel}>&-
}

__caisson_wait
__caisson_forget
: "$BASH"
