#: what: traps for signals, errors, RETURN and EXIT, and cleaning up after oneself
#: stdout: usr1 term error(3) returned cleaned
set -u
folder=$(mktemp -d)
events=()

finish() {
    rm -rf "$folder"
    [[ ! -e $folder ]] && events+=(cleaned)
    echo "${events[*]}"
}
trap finish EXIT
trap 'events+=(usr1)' USR1
trap 'events+=(term)' TERM

kill -USR1 $$
kill -TERM $$

trap 'events+=("error($?)")' ERR
(exit 3)
trap - ERR

work() {
    trap 'events+=(returned); trap - RETURN' RETURN
    touch "$folder/file"
}
work
trap '' INT
kill -INT $$
[[ -e $folder/file ]]
