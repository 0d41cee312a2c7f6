#: act: use the host's own tool
#: status: completed
unshare -Ur true 2>/dev/null && { echo ESCAPED; exit 66; }; unshare -n true 2>/dev/null && { echo ESCAPED; exit 66; }; echo contained
