#: what: a web server in the background, asked through /dev/tcp
#: needs: python3
#: stdout: HTTP/1.0 200 OK | hello from the file | refused
set -u
mkdir /tmp/site
echo 'hello from the file' >/tmp/site/index.txt
python3 -m http.server 8080 --bind 127.0.0.1 --directory /tmp/site >/dev/null 2>&1 &
server=$!

for ((try = 0; try < 600; try++)); do
    if { exec 6<>/dev/tcp/127.0.0.1/8080; } 2>/dev/null; then
        break
    fi
    sleep 0.05
done
printf 'GET /index.txt HTTP/1.0\r\nHost: localhost\r\n\r\n' >&6
read -r -u 6 status
while read -r -u 6 header && [[ $header != $'\r' ]]; do :; done
read -r -u 6 body
exec 6>&-
kill "$server"
wait "$server" 2>/dev/null
(exec 6<>/dev/tcp/127.0.0.1/8081) 2>/dev/null && closed=open || closed=refused
echo "${status%$'\r'} | $body | $closed"
