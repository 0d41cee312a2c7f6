#!/bin/bash
# What the emulated machine runs: the unit tests (TAP) and the tests of the sandbox (pytest), once
# as root and once as an ordinary user with a delegated cgroup, as systemd would give to
# user@1000.service.  The host (./run) reads the "@@" lines and adds up the results.

# Folders and files of pytest, below the project's root; what does not exist is left out.
PYTEST_PATHS=(tests/sandbox/test_acts.py tests/integration/boundary/test_boundary.py)
# A test that hangs shows where, long before the host's patience ends.
PYTEST_OPTIONS=(-v -m vm -p no:cacheprovider -rsfE --color=no --tb=short -o faulthandler_timeout=300)

# Executables below meson's build folder; each speaks TAP.  Those of the policies and of the store take minutes here, and
# ask nothing of a kernel; that of the guest does not come to its end here, which has not been looked into.
UNIT_TESTS='tests/unit/test-*'
NOT_HERE='test-(guest|policy|store|store-files|store-killed|tree)'

# Emulation is 10 to 20 times slower than the processor below it.
UNIT_SECONDS=300

# shellcheck source=/dev/null
. /run/vm/config
cgroup=/sys/fs/cgroup

mark() {
        printf '\n@@%s %s\n' "$TOKEN" "$*"
}

# suite: everything that one user runs, in the user's own cgroup
suite() {
        local path only units=() paths=()

        cd "$PROJECT" || exit
        export CAISSON_VM=1 CAISSON_BUILD=$BUILD PYTHONPATH=$PROJECT/tests/lib
        echo "kernel $(uname -r), $(id -un), cgroup $(</proc/self/cgroup)"
        /usr/bin/python3 /run/vm/facts.py

        mapfile -t only </run/vm/only
        if ((${#only[@]})); then
                for path in "${only[@]}"; do
                        if [[ -f $path && -x $path && $path != *.py ]]; then
                                units+=("$path")
                        else
                                paths+=("$path")
                        fi
                done
        else
                mapfile -t units < <(compgen -G "$BUILD/$UNIT_TESTS" | grep -Ev "/$NOT_HERE\$")
                for path in "${PYTEST_PATHS[@]}"; do
                        [[ ! -e $path ]] || paths+=("$path")
                done
        fi

        for path in "${units[@]}"; do
                [[ -f $path && -x $path ]] || continue
                mark "begin tap ${path##*/}"
                timeout --kill-after=5 "$UNIT_SECONDS" "$path"
                mark "end $?"
        done

        if ((${#paths[@]})); then
                mark "begin pytest pytest"
                /usr/bin/python3 -m pytest "${PYTEST_OPTIONS[@]}" "${paths[@]}"
                mark "end $?"
        fi
}

# in_cgroup FOLDER COMMAND...: a leaf, because a cgroup that hands out controllers may hold no process
in_cgroup() {
        mkdir -p "$cgroup/$1"
        (
                echo "$BASHPID" >"$cgroup/$1/cgroup.procs"
                exec "${@:2}"
        )
}

delegate_to_tester() {
        local folder=$cgroup/tester

        mkdir -p "$folder"
        # systemd delegates these three to users.
        chown tester:tester "$folder" "$folder"/cgroup.{procs,subtree_control,threads}
        mkdir -p "$folder/session"
        chown -R tester:tester "$folder/session"
        echo '+cpu +memory +pids' >"$folder/cgroup.subtree_control"
        install -d -m 700 -o tester -g tester /run/user/1000
}

if [[ ${1:-} == suite ]]; then
        suite
        exit 0
fi

echo "file systems: $(awk '{ print $NF }' /proc/filesystems | paste -sd' ')"
echo "security modules: $(cat /sys/kernel/security/lsm 2>/dev/null)"
echo "cgroup controllers: $(<$cgroup/cgroup.controllers)"
echo "processors: $(nproc), memory: $(awk '/MemTotal/ { print int($2 / 1024) }' /proc/meminfo) MiB," \
        "up $(cut -d' ' -f1 /proc/uptime) s"

# Tests that fail say so in "end"; a status of our own means that they were not run.
status=0
for user in $USERS; do
        mark "user $user"
        case $user in
        root)
                in_cgroup root.scope bash "$0" suite || status=1
                ;;
        user)
                delegate_to_tester
                # Capabilities go with the uid.  The bounding set stays, as for every user who logs in.
                in_cgroup tester/session setpriv --reuid=1000 --regid=1000 --init-groups --inh-caps=-all \
                        env HOME=/home/tester USER=tester LOGNAME=tester XDG_RUNTIME_DIR=/run/user/1000 \
                        bash "$0" suite || status=1
                ;;
        esac
done
exit $status
