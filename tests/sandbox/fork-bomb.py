#: act: fork without end
#: status: process_limit
import os
while True:
    os.fork()
