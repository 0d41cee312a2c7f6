#: what: redirections of many kinds: extra descriptors, swapping, /dev/fd, /dev/stdin, noclobber and appending
#: stdout: out err | read back | from fd | swapped | clobber refused | 2 lines
set -u
exec 4>/tmp/four
echo 'read back' >&4
exec 4>&-
exec 5</tmp/four
read -r back <&5
exec 5<&-

from_fd=$(echo 'from fd' | cat /dev/fd/0)
[[ $(echo piped | cat /dev/stdin) == piped ]]
both() { echo out; echo err >&2; }
both >/tmp/both 2>&1
swapped=$( (both 3>&1 1>/dev/null 2>&3 3>&-) )
[[ $swapped == err ]] && swapped=swapped

echo x >/tmp/kept
set -C
(echo y >/tmp/kept) 2>/dev/null && clobber=overwritten || clobber='clobber refused'
set +C
echo 1 >/tmp/appended
echo 2 >>/tmp/appended
{ echo visible; echo hidden >&2; } 2>/dev/null >/dev/stdout | grep -q visible || exit 1
echo "$(xargs </tmp/both) | $back | $from_fd | $swapped | $clobber | $(wc -l </tmp/appended | tr -d ' ') lines"
