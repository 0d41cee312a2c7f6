#: act: terminals without end
#: status: completed
import os
n = 0
try:
    while n < 500:
        os.openpty()
        n += 1
except OSError:
    pass
if n > 64:
    print("ESCAPED:", n)
    raise SystemExit(66)
print("contained:", n)
