#: what: a report with awk: fields, associative sums, formats, functions and several files
#: stdout: north 30.00 2 south 70.50 3 | average 20.10 | max south 40 | lines 5
set -eu
cat >/tmp/sales.csv <<'CSV'
region,amount
north,10
south,20.5
south,40
north,20
south,10
CSV

report=$(awk -F, '
    NR == 1 { next }
    { sum[$1] += $2; n[$1]++ }
    END { for (region in sum) printf "%s %.2f %d\n", region, sum[region], n[region] }
' /tmp/sales.csv | sort | xargs)
average=$(awk -F, 'NR > 1 { total += $2 } END { printf "%.2f", total / (NR - 1) }' /tmp/sales.csv)
max=$(awk -F, '
    function larger(a, b) { return a + 0 > b + 0 }
    NR > 1 && larger($2, best) { best = $2; who = $1 }
    END { print who, best }' /tmp/sales.csv)
lines=$(awk 'FNR > 1' /tmp/sales.csv | wc -l | tr -d ' ')
[[ $(awk 'BEGIN { print toupper(substr("hello", 2, 3)), length("four"), index("abc", "c") }') == 'ELL 4 3' ]]
[[ $(echo 'a:b:c' | awk -v OFS=- -F: '{ $1 = $1; print }') == a-b-c ]]
echo "$report | average $average | max $max | lines $lines"
