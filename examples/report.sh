#!/bin/bash
# Makes a week of web server log lines, then answers with the usual tools: who came most, what failed.
set -euo pipefail

RANDOM=7
pages=(/ /docs /docs/api /login /pricing)
for ((i = 0; i < 2000; i++)); do
        status=200
        ((RANDOM % 12)) || status=404
        ((RANDOM % 40)) || status=500
        echo "10.0.0.$((RANDOM % 9 + 1)) ${pages[RANDOM % 5]} $status $((RANDOM % 900 + 20))"
done >access.log

echo "Requests: $(wc -l <access.log)"
echo
echo "Busiest visitors"
cut -d' ' -f1 access.log | sort | uniq -c | sort -rn | head -n 3
echo
echo "Per page       requests   failed  mean bytes"
awk '{ n[$2]++; bytes[$2] += $4; if ($3 >= 400) bad[$2]++ }
     END { for (page in n) printf "%-14s %8d %7.1f%% %11.0f\n", page, n[page], 100 * bad[page] / n[page], bytes[page] / n[page] }' \
        access.log | sort
