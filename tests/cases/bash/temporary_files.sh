#: what: temporary files and folders with mktemp, and what umask gives them
#: stdout: 600 700 640 750 | unique 5 | shm ok
set -eu
file=$(mktemp)
folder=$(mktemp -d -t report.XXXXXX)
modes="$(stat -c %a "$file") $(stat -c %a "$folder")"

umask 027
cd "$folder"
touch made
mkdir inside
modes+=" $(stat -c %a made) $(stat -c %a inside)"

declare -A names
for _ in 1 2 3 4 5; do
    name=$(mktemp -u)
    names[$name]=1
done
[[ $TMPDIR == /tmp || -z ${TMPDIR:-} ]]
shm=$(mktemp -p /dev/shm)
echo data >"$shm"
[[ $(<"$shm") == data ]]
rm -r "$folder" "$file" "$shm"
[[ ! -e $folder ]]
echo "$modes | unique ${#names[@]} | shm ok"
