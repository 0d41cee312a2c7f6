#: what: functions: recursion, local variables, return values, output capture, references and errexit
#: stdout: 120 | 0 1 1 2 3 5 8 13 | A-B-C-D | moves 7 | outer | trimmed
set -eu
factorial() {
    if (($1 <= 1)); then
        echo 1
    else
        echo $(($1 * $(factorial $(($1 - 1)))))
    fi
}

fibonacci() {
    local a=0 b=1 i
    for ((i = 0; i < $1; i++)); do
        printf '%s ' "$a"
        ((t = a + b, a = b, b = t)) || true
    done
}

moves=0
hanoi() {
    (($1 == 0)) && return
    hanoi $(($1 - 1)) "$2" "$4" "$3"
    ((moves += 1))
    hanoi $(($1 - 1)) "$4" "$3" "$2"
}
hanoi 3 a b c

variable=outer
change() {
    local variable=inner
    [[ $variable == inner ]]
}
change

join_by() {
    local IFS=$1
    shift
    echo "$*"
}
trim() {
    local -n text=$1
    text=${text//[[:space:]]/}
}
padded='  trim med '
trim padded
sequence=$(fibonacci 8)
echo "$(factorial 5) | ${sequence% } | $(join_by - A B C D) | moves $moves | $variable | $padded"
