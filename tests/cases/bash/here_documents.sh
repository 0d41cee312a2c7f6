#: what: here-documents with and without expansion, here-strings and a file made of them
#: stdout: Dear Ada, you owe 42; literal $name; 3 words; 2 servers
#: files: config.ini
set -eu
name=Ada
amount=$((6 * 7))

letter=$(cat <<LETTER
Dear $name, you owe ${amount}
LETTER
)
literal=$(cat <<'LITERAL'
literal $name
LITERAL
)
read -r -a words <<<"three short words"

cat >config.ini <<INI
[server.one]
host = $(hostname)
[server.two]
host = other
INI
servers=$(grep -c '^\[server' config.ini)
grep -q '^host = sandbox$' config.ini

bash <<'SCRIPT' >/tmp/inner
for number in 1 2 3; do echo "$number"; done
SCRIPT
[[ $(wc -l </tmp/inner) -eq 3 ]]
echo "$letter; $literal; ${#words[@]} words; $servers servers"
