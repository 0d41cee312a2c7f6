#: act: leave jobs behind with nohup, setsid, disown and a coprocess
#: within: 4
#: stdout-has: contained
nohup sleep 4243 >/dev/null 2>&1 &
setsid sleep 4243 &
sleep 4243 &
disown -a
coproc sleep 4243
(trap '' HUP TERM; sleep 4243) &
echo "contained: left $(jobs -p | wc -l) jobs"
