#: what: several writers that take turns by flock, and a queue of work in a named pipe
#: needs: flock
#: stdout: counter 40; handled 6 by 2 workers; busy
set -u
echo 0 >/tmp/counter
add() {
    local n value
    for n in {1..10}; do
        {
            flock 9
            value=$(</tmp/counter)
            echo $((value + 1)) >/tmp/counter
        } 9>/tmp/lock
    done
}
for _ in 1 2 3 4; do
    add &
done
wait

mkfifo /tmp/queue
exec 8<>/tmp/queue
worker() {
    local item
    # Opened by each: who inherits a descriptor has its lock, too, and two who read would share the letters of a line.
    exec 6>/tmp/turn
    while flock 6 && read -r item <&8; do
        flock -u 6
        [[ $item == end ]] && break
        echo "$1 $item" >>/tmp/handled
    done
    exec 6>&-
}
worker one &
worker two &
printf '%s\n' a b c d e f end end >&8
wait

(
    flock 7
    touch /tmp/locked
    sleep 60
) 7>/tmp/held &
holder=$!
until [[ -e /tmp/locked ]]; do
    sleep 0.01
done
flock -n /tmp/held true && busy=free || busy=busy
kill "$holder"
pkill -P "$holder" 2>/dev/null
echo "counter $(</tmp/counter); handled $(wc -l </tmp/handled | tr -d ' ') by 2 workers; $busy"
