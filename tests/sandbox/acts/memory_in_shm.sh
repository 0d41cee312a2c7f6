#: act: keep data in /dev/shm, whose quota is larger than the memory limit
#: options: --memory 64MiB --tmp 512MiB --disk 512MiB
#: status: memory_exceeded
#: host-check: memory_at_most 64
for n in {1..64}; do
    head -c 8M /dev/zero >"/dev/shm/$n" || exit 1
done
echo "ESCAPED: wrote 512 MiB"
