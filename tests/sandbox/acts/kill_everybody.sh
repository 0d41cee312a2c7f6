#: act: send every signal to every process that it may reach
#: options: --env HOST_PID={pid}
#: host-check: bystander_lives
set -u
for number in HUP INT QUIT TERM KILL STOP; do
    kill -"$number" "$HOST_PID" 2>/dev/null && { echo "ESCAPED: signalled a process of the host"; exit 66; }
done
(sleep 30; echo "ESCAPED: a child survived") &
trap '' TERM HUP
kill -TERM -1
kill -KILL -- -1
echo "contained: only its own"
