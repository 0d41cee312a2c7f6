#: act: fill the disk
#: status: disk_exceeded
#: options: --disk 8MiB
with open("x", "wb") as f:
    while True:
        f.write(bytes(1 << 20))
