#: act: links to files of the host as outputs
#: status: completed
#: host-check: listed real
ln -s /etc/passwd a; ln -s /etc b; ln -s /proc/self/root c; mkfifo d; ln -s /dev/zero e; echo ok > real; echo contained
