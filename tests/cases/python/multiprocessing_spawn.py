#: what: spawned processes, which start a fresh interpreter and import the program again
#: stdout: {'alpha': 5, 'be': 2, 'gamma': 5} main once
import multiprocessing
import sys

WORDS = ["alpha", "be", "gamma"]


def measure(word, queue):
    # The child got this module by importing the program's file under another name.
    assert __name__ == "__mp_main__", __name__
    queue.put((word, len(word)))


def main():
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [context.Process(target=measure, args=(word, queue)) for word in WORDS]
    for process in processes:
        process.start()
    found = dict(queue.get(timeout=20) for _ in WORDS)
    for process in processes:
        process.join(timeout=10)
        assert process.exitcode == 0, process.exitcode
    print(dict(sorted(found.items())), "main once")


if __name__ == "__main__":
    assert sys.argv[0].endswith("main.py")
    main()
