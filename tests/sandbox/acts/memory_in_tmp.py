#: act: keep data in files of /tmp, whose quota is larger than the memory limit
#: options: --memory 64MiB --tmp 512MiB --disk 512MiB
#: status: memory_exceeded
#: host-check: memory_at_most 64
with open("/tmp/data", "wb") as file:
    for _ in range(256):
        file.write(bytes(1 << 20))
print("ESCAPED: wrote 256 MiB")
