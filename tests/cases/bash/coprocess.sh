#: what: a coprocess that answers questions, and a second one through named descriptors
#: stdout: 42 7 HELLO ended 0
set -eu
coproc CALC {
    while read -r expression; do
        echo $((expression))
    done
}
pid=$CALC_PID
ask() {
    echo "$1" >&"${CALC[1]}"
    read -r answer <&"${CALC[0]}"
}
ask '6 * 7'
first=$answer
ask '(1 + 2) * 2 + 1'
second=$answer

exec {output}>&"${CALC[1]}"-
exec {output}>&-
wait "$pid"
status=$?

mkfifo /tmp/pipe
tr '[:lower:]' '[:upper:]' </tmp/pipe >/tmp/answer &
exec {pipe}>/tmp/pipe
echo hello >&"$pipe"
exec {pipe}>&-
wait
echo "$first $second $(cat /tmp/answer) ended $status"
