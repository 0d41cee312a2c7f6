#: act: get a library of its own loaded into the runner by LD_AUDIT
#: options: --env LD_AUDIT=/home/user/evil.so
#: status: bad_request
echo "ESCAPED: ran with LD_AUDIT"
