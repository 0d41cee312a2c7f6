#: act: find the channel from the shell, write to it, and then fail
#: status: failed
#: exit: 6
#: host-check: no_value
for path in /proc/$$/fd/* /proc/self/fd/*; do
    descriptor=${path##*/}
    ((descriptor > 2 && descriptor != 255)) || continue
    if [[ $(readlink "$path") == socket:* ]]; then
        echo "ESCAPED: descriptor $descriptor is a socket"
        exit 66
    fi
done
for descriptor in 3 4 5 10 11 63 255; do
    { printf 'CSN1\x05\0\0\0\x19\0\0\0{"type":"int","value":42}' >&"$descriptor"; } 2>/dev/null
done
exit 6
