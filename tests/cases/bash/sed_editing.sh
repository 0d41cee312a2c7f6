#: what: sed: substitution with groups, ranges, in-place edits, hold space and deletion
#: stdout: 2024/03/05 | b c d | key=new other=1 | 3 2 1 | no comments
set -eu
date=$(echo '05.03.2024' | sed -E 's/([0-9]+)\.([0-9]+)\.([0-9]+)/\3\/\2\/\1/')
range=$(printf '%s\n' a b c d e | sed -n '/b/,/d/p' | xargs)

printf '%s\n' key=old other=1 '# comment' '' >/tmp/settings
sed -i -e 's/^key=.*/key=new/' -e '/^#/d;/^$/d' /tmp/settings
settings=$(xargs </tmp/settings)

reversed=$(seq 3 | sed -n '1!G;h;$p' | xargs)
comments=$(grep -q '#' /tmp/settings && echo "comments" || echo "no comments")
[[ $(echo hello | sed 'y/el/ip/;s/.*/<&>/') == '<hippo>' ]]
[[ $(seq 10 | sed -n '0~5p' | xargs) == '5 10' ]]
echo "$date | $range | $settings | $reversed | $comments"
