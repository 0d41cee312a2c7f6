#: act: write more into the home directory than its quota
#: options: --disk 8MiB
#: status: disk_exceeded
#: vm: yes
with open("data", "wb") as file:
    for _ in range(64):
        file.write(bytes(1 << 20))
        file.flush()
print("ESCAPED: wrote 64 MiB")
