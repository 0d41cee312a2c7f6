#: act: run a set-uid program of its own
#: status: completed
cp /usr/bin/id ./id && chmod 6755 id && ./id -u | grep -qx 1000 && echo "contained: still 1000" || { echo "ESCAPED"; exit 66; }
