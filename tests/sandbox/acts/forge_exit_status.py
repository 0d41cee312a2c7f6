#: act: tell over every descriptor that all went well and a value was computed, and then fail
#: status: failed
#: exit: 3
#: host-check: killed_by_nothing
import json
import os
import struct


def frame(kind, payload=b"", flags=0):
    return struct.pack("<4sBBHI", b"CSN1", kind, flags, 0, len(payload)) + payload


for descriptor in range(3, 1024):
    for message in (frame(1, b'{"runner":"python","version":"3"}'), frame(3), frame(5, json.dumps({"type": "int", "value": 1}).encode()), frame(6)):
        try:
            os.write(descriptor, message)
        except OSError:
            break
os._exit(3)
