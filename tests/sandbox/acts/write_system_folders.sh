#: act: make, change and remove files in the system's folders
#: vm: yes
set -u
for folder in / /usr /usr/bin /usr/lib /usr/local /etc /etc/ssl /opt /opt/caisson /bin /lib /proc /proc/self /dev /dev/pts /run /var \
    /var/lib /var/cache /home; do
    for act in touch mkdir mkfifo 'ln -s /etc/passwd'; do
        if $act "$folder/escape" 2>/dev/null; then
            echo "ESCAPED: $act in $folder"
            exit 66
        fi
    done
done
for file in /etc/passwd /etc/hosts /etc/ld.so.cache /usr/bin/env /opt/caisson/bash/run.sh; do
    if { echo x >>"$file"; } 2>/dev/null || rm -f "$file" 2>/dev/null || mv "$file" /tmp 2>/dev/null || chmod 777 "$file" 2>/dev/null; then
        echo "ESCAPED: changed $file"
        exit 66
    fi
done
mapfile -t writable < <(find / -xdev -type d -writable ! -path /home/user ! -path /tmp ! -path /dev/shm 2>/dev/null
    find /etc /usr/local /opt /var /run -type d -writable 2>/dev/null)
if ((${#writable[@]})); then
    echo "ESCAPED: writable ${writable[*]}"
    exit 66
fi
echo "contained: EROFS everywhere"
