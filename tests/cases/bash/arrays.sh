#: what: indexed arrays: slices, holes, sorting, joining, passing by reference and quoting
#: stdout: 5 items, slice [c d], holes 0 1 7, sorted a,b,c,d,e, reversed e d c b a, quoted 2
#: vm: yes
set -eu
items=(c a e b d)
slice=("${items[@]:0:1}" "${items[4]}")

holes=(zero one)
holes[7]=seven
unset 'holes[3]'

mapfile -t sorted < <(printf '%s\n' "${items[@]}" | sort)
joined=$(IFS=,; echo "${sorted[*]}")

reverse() {
    local -n from=$1 to=$2
    local i
    to=()
    for ((i = ${#from[@]} - 1; i >= 0; i--)); do
        to+=("${from[i]}")
    done
}
reverse sorted reversed

quoted=("with space" 'and "quotes"')
count() { echo $#; }
[[ $(count "${quoted[@]}") -eq 2 && $(count ${quoted[@]}) -eq 4 ]]
copy=("${quoted[@]/with/without}")
[[ ${copy[0]} == 'without space' && ${holes[-1]} == seven ]]
echo "${#items[@]} items, slice [${slice[*]}], holes ${!holes[*]}, sorted $joined," \
    "reversed ${reversed[*]}, quoted $(count "${quoted[@]}")"
