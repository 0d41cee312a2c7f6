#: what: what a script sees of processes, memory and itself
#: needs: ps free
#: stdout: own shell seen, child sleep seen and gone, memory told, uptime told, user user
set -eu
own=$(ps -o comm= -p $$)
[[ $own == bash ]]
sleep 20 &
child=$!
# It is a copy of this shell until it has become the program.
until [[ $(ps -o comm= -p "$child") == sleep ]]; do
    sleep 0.01
done
kill "$child"
wait "$child" 2>/dev/null || true
! ps -p "$child" >/dev/null
memory=$(free -k | awk '/^Mem:/ { print $2 }')
((memory > 0))
read -r up _ </proc/uptime
[[ $up =~ ^[0-9.]+$ ]]
[[ $(id -un) == user && $(id -u) -eq 1000 && $(whoami) == user && $HOME == /home/user && $PWD == "$HOME" ]]
[[ $(nproc) -ge 1 && $(uname -s) == Linux && $(hostname) == sandbox ]]
((BASHPID > 0 && PPID >= 0))
echo "own shell seen, child sleep seen and gone, memory told, uptime told, user $USER"
