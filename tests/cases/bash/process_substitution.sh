#: what: process substitution for reading, writing and comparing
#: stdout: common: b c; only left: a; upper: ONE TWO; sum 15
set -euo pipefail
left=$(printf '%s\n' a b c)
right=$(printf '%s\n' b c d)

common=$(comm -12 <(echo "$left") <(echo "$right") | xargs)
only=$(comm -23 <(echo "$left") <(echo "$right"))

printf '%s\n' one two > >(tr '[:lower:]' '[:upper:]' >/tmp/upper)
wait $!

sum=0
while read -r x y; do
    ((sum += x * y))
done < <(paste -d ' ' <(seq 1 3) <(printf '%s\n' 1 1 4))
[[ $(cat <(echo inner)) == inner ]]
if diff <(echo "$left") <(echo "$right") >/tmp/difference; then
    exit 1
fi
grep -q '^> d' /tmp/difference
echo "common: $common; only left: $only; upper: $(xargs </tmp/upper); sum $sum"
