#: act: trap every signal of the shell and go on
#: options: --timeout 1s
#: status: timeout
#: within: 4
trap 'echo caught' {1..64} 2>/dev/null
trap 'while true; do sleep 10; done' EXIT
while true; do
    sleep 10
done
