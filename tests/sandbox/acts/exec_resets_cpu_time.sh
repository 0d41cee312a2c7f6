#: act: burn CPU time in children that end before any limit of their own
#: options: --cpu-time 1s --timeout 20s
#: status: timeout
#: host-check: cpu_at_most 8000
while true; do
    bash -c 'for ((n = 0; n < 20000; n++)); do :; done'
done
