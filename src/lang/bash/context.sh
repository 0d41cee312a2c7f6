#!/bin/bash
# Serve executions in one Bash that lives on (docs/protocols/runner-channel.md).
#
#     bash context.sh OPTIONS
#
# Bash cannot receive packets, so this is only the beginning: the program beside it does the rest (context.c).

if (( $# < 1 )); then
        echo "usage: context.sh OPTIONS" >&2
        exit 2
fi
exec "${BASH_SOURCE[0]%/*}/context" "$1" "${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}" "${BASH_SOURCE[0]%/*}/reader.so"
