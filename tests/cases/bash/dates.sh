#: what: dates: formats, arithmetic, time zones, and printf with times
#: stdout: 2024-02-29 2024-03-01 366 1709164800 09:00 Thu 1970
set -eu
export LC_ALL=C
leap=$(date -u -d '2024-02-28 +1 day' +%F)
next=$(date -u -d "$leap +1 day" +%F)
days=$((($(date -u -d 2025-01-01 +%s) - $(date -u -d 2024-01-01 +%s)) / 86400))
epoch=$(date -u -d "$leap" +%s)
tokyo=$(TZ=Asia/Tokyo date -d '2024-02-29T00:00Z' +%H:%M)
weekday=$(date -u -d "$leap" +%a)
TZ=UTC printf -v year '%(%Y)T' 0
[[ $(TZ=UTC date -d @0 +%FT%TZ) == 1970-01-01T00:00:00Z ]]
((SECONDS >= 0 && EPOCHSECONDS > 1600000000))
[[ $EPOCHREALTIME =~ ^[0-9]+[.,][0-9]{6}$ ]]
start=$(date +%s%N)
sleep 0.02
(($(date +%s%N) - start >= 20000000))
echo "$leap $next $days $epoch $tokyo $weekday $year"
