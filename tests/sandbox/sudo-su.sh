#: act: use the host's set-uid programs
#: status: completed
for p in su mount passwd newgrp; do if command -v $p >/dev/null; then out=$($p -c id </dev/null 2>&1); case $out in *uid=0*) echo ESCAPED; exit 66;; esac; fi; done
echo contained
