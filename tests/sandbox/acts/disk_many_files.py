#: act: go round the largest size of one file with many files
#: options: --disk 8MiB
#: status: disk_exceeded
for number in range(64):
    with open(f"data-{number}", "wb") as file:
        file.write(bytes(1 << 20))
print("ESCAPED: wrote 64 MiB")
