# Root file systems of Debian suites, for programs of this folder, which source this file in the top folder of the source.
# shellcheck shell=bash
# shellcheck disable=SC2317,SC2034  # callers use all of it

mirror=${CAISSON_DEBIAN_MIRROR:-http://deb.debian.org/debian}
ubuntu_mirror=${CAISSON_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
folder=${CAISSON_DEBIAN_FOLDER:-$(mktemp -d)}
[[ -n ${CAISSON_DEBIAN_FOLDER:-} ]] || trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
number=0 failed=0

check()   # NAME COMMAND...: a line of TAP
{
        local name=$1
        shift
        number=$((number + 1))
        # In a condition, bash ignores errexit in functions; so the status is taken after.
        (set -e; "$@") >"$folder/log" 2>&1
        local status=$?
        if [[ $status -eq 0 ]]; then
                echo "ok $number - $name"
        else
                echo "not ok $number - $name"
                tail -n "${LINES_SHOWN:-15}" "$folder/log" | sed 's/^/#   /'
                failed=1
        fi
}

done_testing()
{
        echo "1..$number"
        exit "$failed"
}

# A command in a root file system of its own, by pivot_root(2): the kernel makes no user namespaces in a chroot(2).
inside()   # ROOT COMMAND...
{
        # shellcheck disable=SC2016  # the inner shell expands them
        unshare --mount --propagation private bash -euc '
                root=$1; shift
                mount --bind "$root" "$root"
                mount --rbind /dev "$root/dev"; mount --rbind /sys "$root/sys"; mount -t proc proc "$root/proc"; mount -t tmpfs tmpfs "$root/run"
                cd "$root"; mkdir -p mnt; pivot_root . mnt; cd /; umount -l /mnt
                exec "$@"' bash "$@"
}

# A fresh system below $folder; ARCHITECTURES: of its packages, the first is that of the system.
system()   # SUITE NAME [ARCHITECTURES]
{
        local of=("$mirror")
        # Debian 12 has no keyring of Ubuntu; what is made here is for tests alone.
        [[ $1 != noble ]] || of=("deb [trusted=yes] $ubuntu_mirror noble main universe")
        [[ -e $folder/$2/etc/debian_version ]] ||
                mmdebstrap --quiet --variant=apt --include=ca-certificates,mount --architectures="${3:-$(dpkg --print-architecture)}" "$1" "$folder/$2" "${of[@]}"
        inside "$folder/$2" apt-get -q update
}

installs_packages()   # ROOT PACKAGE...
{
        local root=$1
        shift
        inside "$root" env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "$@"
}

unpacks()   # ROOT TARBALL: in /src/source of a system, for acts look for the name of this project in paths of the host
{
        rm -rf "$1/src"
        mkdir -p "$1/src/source"
        tar -C "$1/src/source" --strip-components=1 -xf "$2"
}
