#: act: write a file that has no end
#: options: --disk 16MiB
#: status: disk_exceeded
cat /dev/zero >endless
