#: what: a pool of forked processes that maps, applies and hands exceptions back
#: stdout: [0, 1, 4, 9, 16, 25] 120 ZeroDivisionError 3
import math
import multiprocessing
import os


def square(number):
    return number * number


def divide(number):
    return 1 // number


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with context.Pool(3) as pool:
        squares = pool.map(square, range(6), chunksize=2)
        factorial = pool.apply_async(math.factorial, (5,)).get(timeout=10)
        try:
            pool.apply(divide, (0,))
            error = None
        except ZeroDivisionError as caught:
            error = caught
        workers = {pool.apply(os.getpid) for _ in range(20)}
        assert os.getpid() not in workers and 1 <= len(workers) <= 3
        ordered = list(pool.imap(square, range(3)))
        assert ordered == [0, 1, 4]
    print(squares, factorial, type(error).__name__, len(ordered))
