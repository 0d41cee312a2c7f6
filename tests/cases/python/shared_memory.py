#: what: shared memory, semaphores, a lock and a condition between processes
#: stdout: sum 1225, value 200 of 200, order ['first', 'second']
from multiprocessing import Condition, Process, Queue, Semaphore, SimpleQueue, Value, shared_memory


def fill(name, start, semaphore):
    block = shared_memory.SharedMemory(name=name)
    for index in range(start, 50, 2):
        block.buf[index] = index
    block.close()
    semaphore.release()


def add(value, times, done):
    for _ in range(times):
        with value.get_lock():
            value.value += 1
    done.put(times)


def second(condition, queue, flag):
    with condition:
        condition.wait_for(lambda: flag.value == 1, timeout=10)
        queue.put("second")


if __name__ == "__main__":
    block = shared_memory.SharedMemory(create=True, size=50)
    semaphore, value, done, condition, flag = Semaphore(0), Value("i", 0), Queue(), Condition(), Value("i", 0)
    queue = SimpleQueue()  # its put() writes before it returns; a Queue's is written by a thread, at some time
    processes = [Process(target=fill, args=(block.name, start, semaphore)) for start in (0, 1)]
    processes += [Process(target=add, args=(value, 100, done)) for _ in range(2)]
    processes.append(Process(target=second, args=(condition, queue, flag)))
    for process in processes:
        process.start()
    assert semaphore.acquire(timeout=10) and semaphore.acquire(timeout=10)
    with condition:
        queue.put("first")
        flag.value = 1
        condition.notify_all()
    order = [queue.get(), queue.get()]
    times = done.get(timeout=10) + done.get(timeout=10)
    for process in processes:
        process.join(timeout=10)
        assert process.exitcode == 0
    print(f"sum {sum(block.buf[:50])}, value {value.value} of {times}, order {order}")
    block.close()
    block.unlink()
