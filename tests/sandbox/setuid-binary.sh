#: act: run a set-uid program of its own
#: status: completed
cp /usr/bin/id ./id
chmod 6755 id
if ./id -u | grep -qx 1000; then
        echo "contained: still 1000"
else
        echo "ESCAPED"
        exit 66
fi
