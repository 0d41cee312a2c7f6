#: act: report an exception of its own making, with a traceback as long as will fit, and end well
#: status: completed
import json
import os
import struct

payload = json.dumps({"type": "engine_error", "message": "\u202e\x1b[2J" + "m" * 20_000, "line": 2 ** 63, "column": -1, "text": None,
                      "traceback": ["x" * 1000] * 30, "errno": 28, "module": {}, "name": []}).encode()
for descriptor in range(3, 1024):
    try:
        os.write(descriptor, struct.pack("<4sBBHI", b"CSN1", 4, 0, 0, len(payload)) + payload)
    except OSError:
        pass
print("contained: ended well")
os._exit(0)
