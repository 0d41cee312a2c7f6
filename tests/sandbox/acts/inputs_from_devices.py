#: act: have a device read that never ends
#: options: --file /dev/zero:zeros
#: status: bad_request
#: within: 5
print("ESCAPED: ran")
