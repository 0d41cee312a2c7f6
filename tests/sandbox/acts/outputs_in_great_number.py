#: act: leave a hundred thousand files
#: options: --disk-files 200000 --memory 1GiB --timeout 120s
#: host-check: listed_at_most 1000
#: within: 120
import os

for folder in range(100):
    os.mkdir(f"d{folder}")
    descriptor = os.open(f"d{folder}", os.O_RDONLY)
    for number in range(1000):
        os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=descriptor))
    os.close(descriptor)
print("contained: 100,000 files")
