#: act: start threads without end
#: options: --pids 64
#: status: completed process_limit
#: host-check: nothing_left
import threading

wait = threading.Event()
threads = []
try:
    while len(threads) < 1000:
        threads.append(threading.Thread(target=wait.wait, daemon=True))
        threads[-1].start()
    print("ESCAPED:", len(threads), "threads")
    raise SystemExit(66)
except RuntimeError as error:
    print("contained:", error, len(threads))
wait.set()
