#: what: threads that share a counter under a lock, hand work through a queue and meet at a barrier
#: stdout: counter 8000, squares 285, met 4
#: vm: yes
import queue
import threading

counter = 0
lock = threading.Lock()
barrier = threading.Barrier(4, timeout=10)
jobs, results = queue.Queue(), queue.Queue()
met = []


def count():
    global counter
    for _ in range(2000):
        with lock:
            counter += 1
    barrier.wait()
    met.append(threading.current_thread().name)


def square():
    while (number := jobs.get()) is not None:
        results.put(number * number)


threads = [threading.Thread(target=count, name=f"counter-{n}") for n in range(4)]
threads += [threading.Thread(target=square, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
for number in range(10):
    jobs.put(number)
for _ in range(3):
    jobs.put(None)
for thread in threads:
    thread.join(timeout=10)
    assert not thread.is_alive()
total = sum(results.get_nowait() for _ in range(10))
print(f"counter {counter}, squares {total}, met {len(met)}")
