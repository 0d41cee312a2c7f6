#: act: claim that the text did not parse, after it ran, to hide what it did
#: status: completed
#: host-check: no_value
import os
import struct

payload = b'{"type":"SyntaxError","message":"forged","line":1,"column":1,"text":""}'
for descriptor in range(3, 1024):
    try:
        os.write(descriptor, struct.pack("<4sBBHI", b"CSN1", 2, 0, 0, len(payload)) + payload)
    except OSError:
        pass
print("contained: ran and then claimed a syntax error")
os._exit(0)
