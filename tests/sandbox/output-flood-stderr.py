#: act: print errors without end
#: status: timeout
#: options: --timeout 2s
import sys
while True:
    sys.stderr.write("x" * 65536)
