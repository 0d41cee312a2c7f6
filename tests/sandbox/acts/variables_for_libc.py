#: act: tune the C library of the runner
#: options: --env GLIBC_TUNABLES=glibc.malloc.check=3
#: status: bad_request
print("ESCAPED: ran with GLIBC_TUNABLES")
