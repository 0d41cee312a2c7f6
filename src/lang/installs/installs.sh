#!/bin/sh
#
# The answer to an installation in a sandbox without network: one line, at once.  Every other call goes on to the real
# program.  As `npm` the script is first in PATH.  As `pip` it is the interpreter that PIP_PYTHON names: each pip calls
# it with a program of its own and with its words, so all forms of the call come here.

LAYER=/opt/packages             # SANDBOX_PYTHON_LAYER and SANDBOX_NODE_LAYER of sandbox/sandbox.h
NODE_LAYER=/opt/node_modules
own=${0%/*}
program=${0##*/}

# The real program, with all words.  pip's parent is the interpreter that pip was called with, perhaps of a venv.
go_on()
{
        if [ "$program" = pip ]; then
                python=$(tr '\0' '\n' <"/proc/$PPID/cmdline" 2>/dev/null | sed -n 1p)
                command -v "$python" >/dev/null 2>&1 || python=/usr/bin/python3
                exec "$python" "$@"
        fi
        IFS=:
        for folder in $PATH; do
                if [ "$folder" != "$own" ] && [ -x "$folder/npm" ]; then
                        exec "$folder/npm" "$@"
                fi
        done
        echo "npm: this sandbox has no npm" >&2
        exit 127
}

# "six 2.0, other 1.0"
packages()
{
        found=
        if [ "$program" = pip ]; then
                for info in "$LAYER"/*.dist-info; do
                        [ -d "$info" ] || continue
                        name=${info##*/}
                        name=${name%.dist-info}
                        found="$found, ${name%%-*} ${name#*-}"
                done
        else
                for module in "$NODE_LAYER"/*/ "$NODE_LAYER"/@*/*/; do
                        [ -f "${module}package.json" ] || continue
                        name=${module#"$NODE_LAYER"/}
                        found="$found, ${name%/}"
                done
        fi
        echo "${found#, }"
}

answer()
{
        names=$(packages)
        if [ "$names" ]; then
                names="its packages are $names"
        else
                names="it has those of the image"
        fi
        echo "$program: this sandbox has no network. Name packages in the field \"packages\" of the request for the run or the sandbox; $names." >&2
        exit 1
}

# Whether the words are an installation from an index: `pip install six`, but not `pip install ./six.whl`.
is_install()
{
        [ "$program" = npm ] || shift # pip's program
        verb=
        named=
        given=
        skip=
        for word in "$@"; do
                if [ "$skip" ]; then
                        skip=
                        continue
                fi
                case $word in
                --no-index | --no-index=* | --offline | --help | -h | -f | --find-links | --find-links=* | -g | --global) return 1 ;;
                -r | --requirement | --requirement=*)
                        named=1
                        case $word in *=*) ;; *) skip=1 ;; esac
                        ;;
                -[cite] | --constraint | --target | --index-url | --extra-index-url | --prefix | --root | --src | --platform | --python-version | \
                        --abi | --implementation | --progress-bar | --proxy | --retries | --timeout | --trusted-host | --cert | --client-cert | \
                        --cache-dir | --log | --report | --upgrade-strategy | --no-binary | --only-binary | --editable | --registry | --cache)
                        skip=1
                        ;;
                -*) ;;
                *)
                        if [ ! "$verb" ]; then
                                verb=$word
                                continue
                        fi
                        given=1
                        case $word in
                        *://* | git+* | @*/*) named=1 ;;
                        . | ./* | ../* | /* | file:* | *.whl | *.zip | *.tgz | *.tar.*) ;;
                        *) named=1 ;;
                        esac
                        ;;
                esac
        done
        case $program:$verb in
        pip:install) [ "$named" ] ;;
        npm:install | npm:i | npm:in | npm:ins | npm:inst | npm:add | npm:ci) [ "$named" ] || [ ! "$given" ] ;;
        *) return 1 ;;
        esac
}

if [ ! "${HTTPS_PROXY-}" ] && is_install "$@"; then
        answer
fi
go_on "$@"
