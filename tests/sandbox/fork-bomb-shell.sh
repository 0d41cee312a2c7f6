#: act: the classic, in the background
#: status: process_limit completed failed timeout
# shellcheck disable=SC2264  # that it calls itself is the act
#: options: --timeout 5s
:(){ :|:& };:
sleep 3
