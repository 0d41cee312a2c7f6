#: act: flood standard error, from several processes at once
#: host-check: output_counted stderr 50000000
#: within: 15
for _ in 1 2 3 4 5; do
    head -c 10M /dev/zero | tr '\0' e >&2 &
done
wait
echo "contained: printed 50 MiB of errors"
