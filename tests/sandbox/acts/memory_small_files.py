#: act: keep data in a great number of tiny files
#: options: --memory 48MiB --disk-files 200000 --disk 1GiB
#: status: memory_exceeded
for number in range(100_000):
    with open(f"f{number}", "wb") as file:
        file.write(b"x" * 4096)
print("ESCAPED: 100,000 files")
