#: act: find a cgroup to change, or any part of sysfs
#: vm: yes
set -u
for path in /sys/kernel /sys/class /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/memory /sys/fs/bpf /sys/devices /cgroup /dev/cgroup; do
    [[ ! -e $path ]] || { echo "ESCAPED: $path is there"; exit 66; }
done
if grep -E ' - (cgroup2?|sysfs|debugfs|tracefs|bpf|securityfs|configfs|fusectl|hugetlbfs|binfmt_misc|mqueue) ' /proc/self/mountinfo; then
    echo "ESCAPED: a file system of the kernel's is mounted"
    exit 66
fi
if grep -v ':/$' /proc/self/cgroup; then
    echo "ESCAPED: tells the path of its cgroup"
    exit 66
fi
echo "contained: no sysfs, no cgroupfs"
