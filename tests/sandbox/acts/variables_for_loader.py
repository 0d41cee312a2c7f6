#: act: get a library of its own loaded into the runner by LD_PRELOAD
#: options: --env LD_PRELOAD=/home/user/evil.so
#: status: bad_request
print("ESCAPED: ran with LD_PRELOAD")
