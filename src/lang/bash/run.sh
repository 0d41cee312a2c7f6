#!/bin/bash
# Run one Bash program and tell the engine, on a private channel, that it starts or why it cannot.
#
#     bash run.sh OPTIONS MAINFILE [ARGS...]
#
# Bash reads a script command by command, so a syntax error shows when half the work is done.  `bash -n` reads all
# of it first.  Then this shell becomes the program's: nothing of it is left that could say how the run ended, so
# the frames end with STARTED and the engine takes the exit status from the kernel.
#
# OPTIONS is for the other runners; Bash has no values to bound and no modules to load.

readonly USAGE_EXIT=2

# shellcheck source=src/lang/bash/report.sh
. "${BASH_SOURCE[0]%/*}/report.sh"

if (( $# < 2 )); then
        echo "usage: run.sh OPTIONS MAINFILE [ARGS...]" >&2
        exit $USAGE_EXIT
fi
main=$2
shift 2

if [[ -S /dev/fd/3 ]]; then
        exec {channel}>&3-
else
        exec {channel}>/dev/null
fi
say_hello
check_syntax
send STARTED
exec "$BASH" -- "$main" "$@" {channel}>&-
