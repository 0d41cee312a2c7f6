#: what: find by name, size, age and kind, with actions, and grep through the tree
#: stdout: 2 scripts, 1 large, 1 old, 3 folders; TASK in 2 files; made executable: run.sh
set -eu
mkdir -p /tmp/tree/a/b
cd /tmp/tree
echo 'echo run # TASK' >run.sh
echo 'echo other' >a/other.sh
echo 'TASK: write' >a/b/notes.txt
head -c 20000 /dev/zero >a/large.bin
touch -d '10 days ago' a/b/old.log
ln -s ../run.sh a/link

scripts=$(find . -name '*.sh' -type f | wc -l | tr -d ' ')
large=$(find . -type f -size +10k | wc -l | tr -d ' ')
old=$(find . -mtime +5 | wc -l | tr -d ' ')
folders=$(find . -type d | wc -l | tr -d ' ')
found=$(grep -rl --include='*' TASK . | wc -l | tr -d ' ')
find . -name 'run*' -exec chmod +x {} +
executable=$(find . -type f -perm -u+x -printf '%f\n')
[[ $(readlink a/link) == ../run.sh && -L a/link && $(readlink -f a/link) == /tmp/tree/run.sh ]]
find . -name '*.log' -delete
[[ ! -e a/b/old.log ]]
grep -qE '^(TASK|DONE): [a-z]+$' a/b/notes.txt
[[ $(grep -o '[a-z]*t[a-z]*' a/b/notes.txt) == write ]]
echo "$scripts scripts, $large large, $old old, $folders folders; TASK in $found files; made executable: $executable"
