#!/bin/bash
# Run one Bash program and tell the engine, on a private channel, that it starts or why it cannot.
#
#     bash run.sh OPTIONS MAINFILE [ARGS...]
#
# Bash reads a script command by command, so a syntax error shows when half the work is done.  `bash -n` reads all
# of it first.  Then this shell becomes the program's: nothing of it is left that could say how the run ended, so
# the frames end with STARTED and the engine takes the exit status from the kernel.
#
# Of OPTIONS only `prelude` is for Bash, which has no values to bound and no modules to load.  The program's shell reads
# the prelude as its $BASH_ENV (prelude.sh).

readonly USAGE_EXIT=2

# shellcheck source=src/lang/bash/report.sh
. "${BASH_SOURCE[0]%/*}/report.sh"

if (( $# < 2 )); then
        echo "usage: run.sh OPTIONS MAINFILE [ARGS...]" >&2
        exit $USAGE_EXIT
fi
main=$2
prelude=
if [[ ,$1, == *,prelude=* ]]; then
        prelude=${1#*prelude=}
        prelude=${main%/*}/${prelude%%,*}
fi
shift 2

if [[ -S /dev/fd/3 ]]; then
        exec {channel}>&3-
else
        exec {channel}>/dev/null
fi
say_hello
check_syntax
send STARTED
if [[ $prelude ]]; then
        check_prelude
        export BASH_ENV=${BASH_SOURCE[0]%/*}/prelude.sh
        __caisson_prelude=$prelude __caisson_channel=$channel exec "$BASH" -- "$main" "$@"
fi
exec "$BASH" -- "$main" "$@" {channel}>&-
