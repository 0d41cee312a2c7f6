#: what: messages on standard error beside results on standard output, and a warning that is no failure
#: stdout: result 10
set -eu
log() {
    printf '%s: %s\n' "$1" "${*:2}" >/dev/stderr
}
log info starting with $# arguments
total=0
for number in 1 2 3 x 4; do
    if [[ ! $number =~ ^[0-9]+$ ]]; then
        log warning "skipped '$number'"
        continue
    fi
    ((total += number))
done
ls /no/such/folder 2>/tmp/message || log warning "$(wc -l </tmp/message | tr -d ' ') line of complaint"
echo "written in blocks" >&2
printf 'result %d\n' "$total"
