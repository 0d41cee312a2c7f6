#: what: xargs with several processes, odd file names and a failure that is told
#: stdout: squares 1 4 9 16 25; odd names 3; status 123
set -u
mkdir /tmp/work
cd /tmp/work || exit 1
squares=$(seq 5 | xargs -P 3 -I{} bash -c 'echo $(({} * {}))' | sort -n | xargs)

touch 'plain' 'with space' $'new\nline'
odd=$(find . -type f -print0 | xargs -0 -n 1 basename -z | tr -dc '\0' | wc -c | tr -d ' ')

printf '%s\n' true false true | xargs -n 1 env
status=$?
[[ $(printf '%s\n' a b c d | xargs -n 2 echo | head -n 1) == 'a b' ]]
[[ -z $(xargs -r echo never </dev/null) ]]
echo "squares $squares; odd names $odd; status $status"
