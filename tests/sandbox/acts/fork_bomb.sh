#: act: the classic fork bomb of the shell
#: options: --timeout 3s --pids 64
#: status: process_limit
bomb() {
    bomb | bomb &
}
bomb
sleep 60      # the limit ends the run; without this line a slow machine ends the bomb as a left-over first
