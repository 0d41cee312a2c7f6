#: act: use all inodes
#: status: disk_exceeded
#: options: --disk-files 500
i = 0
while True:
    open(str(i), "w").close()
    i += 1
