#: what: tar, gzip, xz and bzip2: pack, list, unpack, compare
#: stdout: gz bz2 xz; 3 entries; same; split 3 parts
#: files: backup.tar.gz
set -eu
mkdir -p /tmp/src/sub
seq 1000 >/tmp/src/numbers
echo 'other' >/tmp/src/sub/other
done=()

tar -C /tmp -czf backup.tar.gz src/numbers src/sub
entries=$(tar -tzf backup.tar.gz | wc -l | tr -d ' ')
mkdir /tmp/out
tar -C /tmp/out -xzf backup.tar.gz
same=$(diff -r /tmp/src /tmp/out/src && echo same)

for tool in gzip bzip2 xz; do
    cp /tmp/src/numbers /tmp/numbers
    "$tool" -f /tmp/numbers
    packed=(/tmp/numbers.*)
    "$tool" -dc "${packed[0]}" | cmp - /tmp/src/numbers
    done+=("${packed[0]##*.}")
    rm "${packed[0]}"
done
split -l 400 /tmp/src/numbers /tmp/part-
parts=$(ls /tmp/part-* | wc -l | tr -d ' ')
cat /tmp/part-* | cmp - /tmp/src/numbers
[[ $(zcat <(gzip -c /tmp/src/sub/other)) == other ]]
echo "${done[*]}; $entries entries; $same; split $parts parts"
