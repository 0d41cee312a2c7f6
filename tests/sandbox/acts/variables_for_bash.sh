#: act: get a file of its own read by the shell before the program
#: options: --env BASH_ENV=/home/user/evil.sh
#: status: bad_request
echo "ESCAPED: ran with BASH_ENV"
