#: act: pull the emergency levers: sysrq, dropped caches, the log, and the watchdog
set -u
for path in /proc/sysrq-trigger /proc/sys/kernel/sysrq /proc/sys/vm/drop_caches /dev/kmsg /proc/kmsg /dev/watchdog /proc/mtrr \
    /proc/irq/default_smp_affinity /proc/sys/kernel/panic; do
    # h only prints a help text; a mask made of /dev/null takes it and does nothing.
    if { echo h >"$path"; } 2>/dev/null && [[ ! $(stat -c '%t:%T' "$path") == 1:3 ]]; then
        echo "ESCAPED: wrote $path"
        exit 66
    fi
    echo "contained: $path"
done
