#: what: shared memory, semaphores, a lock and a condition between processes
#: stdout: sum 1225, value 200, order ['first', 'second']
from multiprocessing import Condition, Process, Queue, Semaphore, Value, shared_memory


def fill(name, start, semaphore):
    block = shared_memory.SharedMemory(name=name)
    for index in range(start, 50, 2):
        block.buf[index] = index
    block.close()
    semaphore.release()


def add(value, times):
    for _ in range(times):
        with value.get_lock():
            value.value += 1


def second(condition, queue, flag):
    with condition:
        condition.wait_for(lambda: flag.value == 1, timeout=10)
        queue.put("second")


if __name__ == "__main__":
    block = shared_memory.SharedMemory(create=True, size=50)
    semaphore, value, queue, condition, flag = Semaphore(0), Value("i", 0), Queue(), Condition(), Value("i", 0)
    processes = [Process(target=fill, args=(block.name, start, semaphore)) for start in (0, 1)]
    processes += [Process(target=add, args=(value, 100)) for _ in range(2)]
    processes.append(Process(target=second, args=(condition, queue, flag)))
    for process in processes:
        process.start()
    assert semaphore.acquire(timeout=10) and semaphore.acquire(timeout=10)
    with condition:
        queue.put("first")
        flag.value = 1
        condition.notify_all()
    order = [queue.get(timeout=10), queue.get(timeout=10)]
    for process in processes:
        process.join(timeout=10)
        assert process.exitcode == 0
    print(f"sum {sum(block.buf[:50])}, value {value.value}, order {order}")
    block.close()
    block.unlink()
