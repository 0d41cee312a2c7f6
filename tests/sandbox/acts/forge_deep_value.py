#: act: send as its value JSON that is nested without end, has names twice, is no UTF-8, or no JSON
#: status: completed
import os
import struct
import sys

payloads = [b'{"type":"list","value":' + b"[" * 30_000 + b"]" * 30_000 + b"}", b'{"type":"x","type":"y","value":1,"value":2}',
            b'{"type":"str","value":"\xff\xfe\xed\xa0\x80"}', b'{"type":"float","value":NaN}', b'{"type":"int","value":1e999999999}',
            b'{"value":"\\ud800"}', b"[]", b"null", b'{"type":{},"value":1}', b'{"type":"\\u0000"}']
number = int(sys.stdin.read() or 0) if not sys.stdin.isatty() else 0
channel = [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]
for payload in payloads:
    if os.fork() == 0:
        for descriptor in channel:
            try:
                os.write(descriptor, struct.pack("<4sBBHI", b"CSN1", 5, 0, 0, len(payload)) + payload)
            except OSError:
                pass
        os._exit(0)
    os.wait()
print("contained: sent", len(payloads) + number, "values")
os._exit(0)
