#: what: standard input in loops: fields, separators, without a last line feed, and a time-out
#: stdin: alice:30:admin\nbob:25:\n  spaced  :1:x y\nlast:9:end
#: stdout: 4 users, ages 65, admin alice, spaced [  spaced  ], last end, then nothing
#: vm: yes
set -u
users=0 ages=0
while IFS=: read -r name age role || [[ -n $name ]]; do
    ((users += 1, ages += age))
    [[ $role == admin ]] && admin=$name
    [[ $name == *spaced* ]] && spaced=$name
    last=$role
done
read -r -t 0.1 rest && after=something || after=nothing
[[ -z ${rest:-} ]]

read -r -d '' block < <(printf 'one\ntwo\0ignored')
[[ $block == $'one\ntwo' ]] || exit 1
IFS=, read -r -a fields <<<'a,b,,d'
[[ ${#fields[@]} -eq 4 && -z ${fields[2]} ]] || exit 1
read -r -n 3 three <<<abcdef
[[ $three == abc ]] || exit 1
echo "$users users, ages $ages, admin $admin, spaced [$spaced], last $last, then $after"
