#: act: the classic, in the background
#: status: process_limit completed failed timeout
#: options: --timeout 5s
:(){ :|:& };:
sleep 3
