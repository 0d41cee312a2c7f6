#: act: print without end
#: status: timeout
#: options: --timeout 2s
import sys
while True:
    sys.stdout.write("x" * 65536)
