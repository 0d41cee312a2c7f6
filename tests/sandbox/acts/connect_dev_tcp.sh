#: act: reach the host and the world through /dev/tcp and /dev/udp of the shell
#: options: --env PORT={port}
#: host-check: nobody_connected
set -u
for target in "tcp/127.0.0.1/$PORT" "tcp/localhost/$PORT" "tcp/0/$PORT" tcp/8.8.8.8/53 udp/8.8.8.8/53 tcp/169.254.169.254/80 \
    tcp/example.com/80; do
    if (exec 3<>"/dev/$target" && echo escape >&3) 2>/dev/null; then
        echo "ESCAPED: /dev/$target"
        exit 66
    fi
    echo "contained: $target"
done
for tool in curl wget nc ncat socat ssh telnet; do
    command -v "$tool" >/dev/null || continue
    case $tool in
    curl) timeout 3 curl -s --max-time 2 "http://127.0.0.1:$PORT/" http://8.8.8.8/ ;;
    wget) timeout 3 wget -q -T 1 -t 1 -O - "http://127.0.0.1:$PORT/" ;;
    ssh) timeout 3 ssh -o BatchMode=yes -o ConnectTimeout=1 127.0.0.1 true 2>/dev/null ;;
    *) timeout 2 "$tool" 127.0.0.1 "$PORT" </dev/null 2>/dev/null ;;
    esac && { echo "ESCAPED: $tool"; exit 66; }
    echo "contained: $tool"
done
