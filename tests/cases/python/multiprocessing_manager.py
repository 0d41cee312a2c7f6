#: what: a manager process that serves a dictionary and a list over a local socket
#: stdout: {'a': 1, 'b': 4, 'c': 9} ['a', 'b', 'c']
from multiprocessing import Manager, Pipe, Process


def store(numbers, names, name, number):
    numbers[name] = number * number
    names.append(name)


def echo(connection):
    while (message := connection.recv()) != "end":
        connection.send(message.upper())
    connection.close()


if __name__ == "__main__":
    with Manager() as manager:
        numbers, names = manager.dict(), manager.list()
        workers = [Process(target=store, args=(numbers, names, name, n)) for n, name in enumerate("abc", 1)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(timeout=10)
        print(dict(sorted(numbers.items())), sorted(names))
    ours, theirs = Pipe()
    speaker = Process(target=echo, args=(theirs,))
    speaker.start()
    ours.send("hello")
    assert ours.poll(10) and ours.recv() == "HELLO"
    ours.send("end")
    speaker.join(timeout=10)
    assert speaker.exitcode == 0
