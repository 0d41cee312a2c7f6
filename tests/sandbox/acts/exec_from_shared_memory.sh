#: act: run a program from a folder that is for data only
set -u
for folder in /dev/shm; do
    cp /usr/bin/env "$folder/copy"
    chmod 755 "$folder/copy"
    if answer=$("$folder/copy" 2>&1); then
        echo "ESCAPED: ran from $folder"
        exit 66
    fi
    echo "contained: ${answer##*: } in $folder"
    printf '#!/bin/sh\necho ran\n' >"$folder/script"
    chmod 755 "$folder/script"
    if answer=$("$folder/script" 2>&1); then
        echo "ESCAPED: ran a script from $folder"
        exit 66
    fi
    echo "contained: ${answer##*: }"
done
