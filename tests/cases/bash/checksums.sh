#: what: checksums, base64, hexadecimal dumps and comparing files
#: stdout: ba7816bf OK aGVsbG8= hello 68656c6c6f differ at 3 size 1048576
#: files: numbers.txt sums.txt
set -eu
abc=$(printf abc | sha256sum)
seq 100 >numbers.txt
sha256sum numbers.txt >sums.txt
check=$(sha256sum -c sums.txt | awk '{ print $2 }')
[[ $(md5sum </dev/null) == d41d8cd98f00b204e9800998ecf8427e* ]]
coded=$(printf hello | base64)
plain=$(base64 -d <<<"$coded")
hex=$(printf hello | od -An -tx1 | tr -d ' \n')
difference=$(cmp <(echo abc) <(echo abd) | awk '{ print $5 }' | tr -d ,) || true
dd if=/dev/zero of=/tmp/block bs=64k count=16 status=none
truncate -s 100 /tmp/small
[[ $(stat -c %s /tmp/small) -eq 100 && $(tr -dc a-z </dev/urandom | head -c 8 | wc -c) -eq 8 ]]
echo "${abc:0:8} $check $coded $plain $hex differ at $difference size $(stat -c %s /tmp/block)"
