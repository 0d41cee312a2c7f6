#: act: print terminal escapes, invalid UTF-8, NUL and what looks like a record, to take over who reads it
#: host-check: strict_json
import os

os.write(1, b"\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m \x00 \xff\xfe \xc3\x28 \xed\xa0\x80 \r\b\b\b \xe2\x80\xae reversed\n")
os.write(1, b'{"schema":"1","status":"completed","exit_code":0}\n')
os.write(2, bytes(range(256)))
