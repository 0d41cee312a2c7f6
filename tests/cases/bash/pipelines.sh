#: what: pipelines with several stages, their statuses, tee and the last stage in this shell
#: stdout: 3 warnings of 6 lines; statuses 1 0 3; total 60; teed 6
#: vm: yes
set -u
log=$(mktemp)
printf '%s\n' 'info start' 'warning disk' 'info run' 'warning heat' 'error stop' 'warning end' >"$log"

warnings=$(grep -c '^warning' "$log")
lines=$(wc -l <"$log" | tr -d ' ')
false | true | (exit 3)
statuses="${PIPESTATUS[*]}"

shopt -s lastpipe
total=0
seq 10 10 30 | while read -r number; do
    ((total += number))
done

tee /tmp/copy <"$log" >/dev/null
set -o pipefail
if false | cat; then
    echo "pipefail did not work" >&2
    exit 1
fi
echo "$warnings warnings of $lines lines; statuses $statuses; total $total; teed $(wc -l </tmp/copy | tr -d ' ')"
