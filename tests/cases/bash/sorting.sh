#: what: sort by several keys, numbers, versions and human sizes, with uniq, cut, join, paste and column order
#: stdout: top: Ada 31; unique 3; versions v1.2 v1.10; sizes 2K 1M 3G; joined 2; columns 1:x,2:y
set -eu
printf '%s\n' 'Grace 28' 'Ada 31' 'Linus 28' 'Ada 31' >/tmp/people
top=$(sort -k2,2nr -k1,1 /tmp/people | head -n 1)
unique=$(sort -u /tmp/people | wc -l | tr -d ' ')
[[ $(sort /tmp/people | uniq -d) == 'Ada 31' ]]
[[ $(sort /tmp/people | uniq -c | sort -rn | awk 'NR == 1 { print $1 }') == 2 ]]
versions=$(printf '%s\n' v1.10 v1.2 | sort -V | xargs)
sizes=$(printf '%s\n' 3G 2K 1M | sort -h | xargs)
printf '%s\n' 'Ada math' 'Grace code' 'Zoe art' >/tmp/topics
joined=$(join <(sort -u /tmp/people) /tmp/topics | wc -l | tr -d ' ')
columns=$(paste -d: <(seq 2) <(printf '%s\n' x y) | paste -sd,)
[[ $(cut -d' ' -f1 /tmp/people | sort -u | xargs) == 'Ada Grace Linus' ]]
[[ $(printf 'b\na\nc\n' | sort -r | xargs) == 'c b a' && $(seq 5 | shuf | sort -n | xargs) == '1 2 3 4 5' ]]
echo "top: $top; unique $unique; versions $versions; sizes $sizes; joined $joined; columns $columns"
