#: what: thread and process pools of concurrent.futures, with time-outs, callbacks and failures
#: stdout: threads [0, 1, 8, 27], processes [1, 1, 2, 6, 24], done 3, failed ValueError, late
import concurrent.futures as futures
import math
import threading


def cube(number):
    return number ** 3


def fail():
    raise ValueError("on purpose")


def main():
    finished = []
    release = threading.Event()
    with futures.ThreadPoolExecutor(4) as pool:
        cubes = list(pool.map(cube, range(4)))
        jobs = [pool.submit(cube, n) for n in range(3)]
        for job in jobs:
            job.add_done_callback(finished.append)
        futures.wait(jobs, timeout=10)
        failed = pool.submit(fail)
        waiting = pool.submit(release.wait, 20)
        try:
            waiting.result(timeout=0.05)
            late = "in time"
        except futures.TimeoutError:
            late = "late"
        release.set()
    with futures.ProcessPoolExecutor(2) as pool:
        factorials = list(pool.map(math.factorial, range(5)))
    print(f"threads {cubes}, processes {factorials}, done {len(finished)}, "
          f"failed {type(failed.exception()).__name__}, {late}")


if __name__ == "__main__":
    main()
