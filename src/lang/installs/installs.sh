#!/bin/sh
#
# The answer to an installation in a sandbox that cannot have it: one line, at once.  Every other call goes on to the real
# program.  As `npm`, `apt-get` and `apt` the script is first in PATH.  As `pip` it is the interpreter that PIP_PYTHON
# names: each pip calls it with a program of its own and with its words, so all forms of the call come here.

LAYER=/opt/packages             # SANDBOX_PYTHON_LAYER and SANDBOX_NODE_LAYER of sandbox/sandbox.h
NODE_LAYER=/opt/node_modules
PACKAGES=/var/lib/dpkg          # the database of Debian packages
SUDO=/run/sudo.socket           # GUEST_SUDO_SOCKET of wire/guest_protocol.h
own=${0%/*}
program=${0##*/}

# The path of the real program; nothing where there is none.
find_program()
{
        IFS=:
        for folder in $PATH; do
                if [ "$folder" != "$own" ] && [ -x "$folder/$program" ]; then
                        echo "$folder/$program"
                        return
                fi
        done
}

# Whether npm would take / for the project, because /node_modules is a folder (the link to NODE_LAYER).
is_without_project()
{
        for word in "$@"; do
                case $word in
                -g | --global | --location=global | --prefix | --prefix=*) return 1 ;;
                esac
        done
        folder=$PWD
        while [ "$folder" ]; do
                if [ -f "$folder/package.json" ] || [ -d "$folder/node_modules" ]; then
                        return 1
                fi
                folder=${folder%/*}
        done
        [ ! -f /package.json ]
}

# The real program, with all words.  pip's parent is the interpreter that pip was called with, perhaps of a venv.
go_on()
{
        if [ "$program" = pip ]; then
                python=$(tr '\0' '\n' <"/proc/$PPID/cmdline" 2>/dev/null | sed -n 1p)
                command -v "$python" >/dev/null 2>&1 || python=/usr/bin/python3
                exec "$python" "$@"
        fi
        real=$(find_program)
        if [ "$program" = npm ] && is_without_project "$@"; then
                set -- --prefix "$PWD" "$@"
        fi
        if [ "$real" ]; then
                exec "$real" "$@"
        fi
        echo "$program: this sandbox has no $program" >&2
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

# ---- packages of Debian ----

# Whether the words install packages; `from_mirror` is set if these have to be fetched.
is_apt_install()
{
        verb=
        named=
        from_mirror=
        skip=
        for word in "$@"; do
                if [ "$skip" ]; then
                        skip=
                        continue
                fi
                case $word in
                -h | --help | -v | --version | -s | --simulate | --dry-run | --just-print | --no-act | --print-uris) return 1 ;;
                -[otca] | --option | --config-file | --target-release | --default-release | --host-architecture) skip=1 ;;
                -*) ;;
                *)
                        if [ ! "$verb" ]; then
                                verb=$word
                                continue
                        fi
                        case $word in
                        ./* | ../* | /*) ;;
                        *) named=1 ;;
                        esac
                        ;;
                esac
        done
        case $verb in
        install | reinstall) from_mirror=$named ;;
        update | upgrade | dist-upgrade | full-upgrade | build-dep | source | download) from_mirror=1 ;;
        *) return 1 ;;
        esac
}

# Why nothing can be installed, and how to ask; nothing where it can.
apt_problem()
{
        if [ ! -f "$PACKAGES/status" ] || [ ! "$(find_program)" ]; then
                echo "this file system has no database of Debian packages; ask for a persistent sandbox with \"root\", \"sudo\" and an \"image\" of Debian," \
                        "or name packages of Python and Node in the field \"packages\""
        elif [ ! -w "$PACKAGES" ] && [ -S "$SUDO" ]; then
                echo "only root installs packages; write \"sudo $program $*\""
        elif [ ! -w "$PACKAGES" ]; then
                echo "only root installs packages, and this sandbox has no root; ask for a persistent sandbox with \"root\" and \"sudo\""
        elif [ "$from_mirror" ] && [ ! "${HTTPS_PROXY-}" ]; then
                echo "this sandbox has no network; ask for one with the \"network\" \"allow\" and the host of the mirror in \"allow\", or with \"public\""
        fi
}

case $program in
apt | apt-get)
        problem=
        if is_apt_install "$@"; then
                problem=$(apt_problem "$@")
        fi
        if [ "$problem" ]; then
                echo "$program: $problem." >&2
                exit 100
        fi
        ;;
*)
        if [ ! "${HTTPS_PROXY-}" ] && is_install "$@"; then
                answer
        fi
        ;;
esac
go_on "$@"
