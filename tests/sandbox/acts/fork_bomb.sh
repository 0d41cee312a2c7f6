#: act: the classic fork bomb of the shell
#: options: --timeout 3s --pids 64
#: status: process_limit
bomb() {
    bomb | bomb &
}
bomb
