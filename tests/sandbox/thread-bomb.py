#: act: threads without end
#: status: process_limit failed
import threading, time
while True:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
