#: act: make more files, folders and links than allowed
#: options: --disk-files 100
#: status: disk_exceeded
import os

for number in range(1000):
    os.mkdir(f"folder-{number}")
    os.symlink("nowhere", f"link-{number}")
    os.mkfifo(f"pipe-{number}")
print("ESCAPED: made 3000")
