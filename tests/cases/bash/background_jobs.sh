#: what: jobs in the background: wait for one and for all, statuses, kill, and a time-out
#: stdout: statuses 0 5; first b; killed 143; late 124; jobs 0
set -u
(exit 0) &
good=$!
(exit 5) &
bad=$!
wait "$good"
statuses=$?
wait "$bad"
statuses+=" $?"

(sleep 60; echo a) >/tmp/first &
slow=$!
(sleep 0.05; echo b) >>/tmp/second &
wait -n
first=$(cat /tmp/second)
kill "$slow"
wait "$slow" 2>/dev/null
killed=$?

timeout 0.1 sleep 10
late=$?

for n in 1 2 3 4; do
    (echo "$n" >"/tmp/job-$n") &
done
wait
[[ $(cat /tmp/job-* | sort | xargs) == '1 2 3 4' ]]
echo "statuses $statuses; first $first; killed $killed; late $late; jobs $(jobs -r | wc -l | tr -d ' ')"
