#!/usr/bin/python3
"""A hostile neighbour: attacks of one tenant on the HTTP interface, and the latency of another tenant meanwhile.

Each attack is a function of the address, the key (None: the daemon needs none) and an event that ends it.  An attack opens what it can, holds
it, and opens again what the daemon has closed.  As a program this file starts the attacks as processes of low priority and measures the other
tenant:

    bench/neighbour.py 127.0.0.1:8080 --pid PID [--key KEY] [--attack NAME]... [--seconds N]
"""

import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import resource
import select
import socket
import time

MIB = 1 << 20
BODIES, BODY = 16, 64 * MIB        # connections that withhold the last byte, and the length that each announces
READERS, OUTPUT = 400, 3 * MIB     # readers of one run's events, and bytes that the run prints
HEADS = 13000                      # connections with half a head
PAUSE = 0.05                       # seconds between two looks at the connections
NICE = 19
PROCESSES_MAX = 4
RUN = {"language": "python", "code": "print(1)"}


# ---- attacks ----

def head_of(method, path, key, *lines):
    authorization = [f"Authorization: Bearer {key}"] if key else []
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *authorization, *lines]).encode()


def connect(address):
    """A connection that is not waited for, or None."""
    connection = socket.socket()
    connection.setblocking(False)
    try:
        connection.connect(address)
    except BlockingIOError:
        pass
    except OSError:
        connection.close()
        return None
    return connection


def is_closed(connection):
    """Whether the server has closed the connection or answered."""
    try:
        return len(connection.recv(65536)) >= 0
    except BlockingIOError:
        return False
    except OSError:
        return True


def close_all(connections):
    for connection in connections:
        connection.close()


def send_all(connection, left, stop):
    """Send as far as the server reads; False where it has closed."""
    while left and not stop.is_set():
        try:
            left = left[connection.send(left):]
        except BlockingIOError:
            select.select([], [connection], [], PAUSE)
        except OSError:
            return False
    return True


def attack_withheld_bodies(address, key, stop):
    """Bodies of which the last byte never comes."""
    begin = head_of("POST", "/v1/runs", key, f"Content-Length: {BODY}") + b"\r\n\r\n"
    piece, connections = b" " * MIB, {}
    while not stop.is_set():
        for connection in [one for one in connections if is_closed(one)]:
            connection.close()
            del connections[connection]
        while len(connections) < BODIES and (connection := connect(address)):
            connections[connection] = [begin, BODY - 1]
        _, writable, _ = select.select([], list(connections), [], PAUSE)
        for connection in writable:
            state = connections[connection]
            data = state[0] or piece[:min(state[1], MIB)]
            with contextlib.suppress(OSError):
                sent = connection.send(data) if data else 0
                state[0], state[1] = (state[0][sent:], state[1]) if state[0] else (b"", state[1] - sent)
        if not any(state[1] for state in connections.values()):
            stop.wait(PAUSE)
    close_all(connections)


def start_printing(address, key):
    """The id of a run whose events are kept, and are as long as they may be."""
    connection = http.client.HTTPConnection(*address, timeout=60)
    headers = {"Prefer": "respond-async", **({"Authorization": f"Bearer {key}"} if key else {})}
    code = f"import sys\nfor _ in range({OUTPUT} // 4096): sys.stdout.write('x' * 4095 + '\\n'); sys.stdout.flush()"
    connection.request("POST", "/v1/runs", json.dumps({"language": "python", "code": code, "limits": {"output_bytes": OUTPUT}}), headers)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer["id"]


def attack_unread_streams(address, key, stop):
    """Readers of one run's events that do not read."""
    path = f"/v1/runs/{start_printing(address, key)}/events"
    begin, connections = head_of("GET", path, key) + b"\r\n\r\n", []
    while not stop.is_set():
        gone = select.poll()
        for connection in connections:
            gone.register(connection, select.POLLRDHUP)
        closed = {fd for fd, _ in gone.poll(0)}
        for connection in [one for one in connections if one.fileno() in closed]:
            connection.close()
            connections.remove(connection)
        while len(connections) < READERS and not stop.is_set() and (connection := connect(address)):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            select.select([], [connection], [], 1)
            send_all(connection, begin, stop)
            connections.append(connection)
        stop.wait(PAUSE)
    close_all(connections)


def attack_half_heads(address, key, stop):
    """Connections whose heads have no end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    begin, poll, connections = head_of("GET", "/healthz", key) + b"\r\nX-Half: ", select.epoll(), {}
    most = min(HEADS, hard - 100)
    while not stop.is_set():
        while len(connections) < most and not stop.is_set() and (connection := connect(address)):
            connections[connection.fileno()] = connection
            poll.register(connection, select.EPOLLOUT | select.EPOLLET | select.EPOLLRDHUP)
            if len(connections) % 100 == 0:
                break
        for number, what in poll.poll(0 if len(connections) < most else PAUSE, 1000):
            if what & (select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR):
                connections.pop(number).close()
            else:
                with contextlib.suppress(OSError):
                    connections[number].send(begin)
    close_all(connections.values())
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


ATTACKS = {"withheld-bodies": attack_withheld_bodies, "unread-streams": attack_unread_streams, "half-heads": attack_half_heads}


# ---- the other tenant ----

def in_background(attack, address, key, stop):
    os.nice(NICE)
    with contextlib.suppress(KeyboardInterrupt):
        attack(address, key, stop)


@contextlib.contextmanager
def attacked(address, key, names):
    """Attacks of these names, one process each, until the block ends."""
    if len(names) > PROCESSES_MAX:
        raise ValueError(f"at most {PROCESSES_MAX} attacks at once")
    stop = multiprocessing.Event()
    processes = [multiprocessing.Process(target=in_background, args=(ATTACKS[name], address, key, stop)) for name in names]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        stop.set()
        for process in processes:
            process.join(20)
            process.kill()


def ask(address, key, method, path, body=None):
    """(status, milliseconds) of one request on a connection of its own; 0: no answer."""
    begin = time.monotonic()
    connection = http.client.HTTPConnection(*address, timeout=30)
    try:
        connection.request(method, path, body, {"Authorization": f"Bearer {key}"} if key else {})
        answer = connection.getresponse()
        answer.read()
        status = answer.status
    except (OSError, http.client.HTTPException):
        status = 0
    connection.close()
    return status, (time.monotonic() - begin) * 1000


def percentile(sorted_values, part):
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * part))] if sorted_values else float("nan")


def summary(answers):
    """p50, p99 and the maximum in milliseconds, and how many of how many requests had no answer of success."""
    times = sorted(ms for _, ms in answers)
    return {"p50": percentile(times, .5), "p99": percentile(times, .99), "max": times[-1] if times else float("nan"), "n": len(times),
            "failed": sum(not 200 <= status < 300 for status, _ in answers)}


def measure(address, key, seconds, pause=0.02):
    """Latencies of /healthz and of a run, asked in turns."""
    found = {"/healthz": [], "POST /v1/runs": []}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found["/healthz"].append(ask(address, key, "GET", "/healthz"))
        found["POST /v1/runs"].append(ask(address, key, "POST", "/v1/runs", json.dumps(RUN)))
        time.sleep(pause)
    return {name: summary(answers) for name, answers in found.items()}


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def show(title, found, pid):
    for path, row in found.items():
        print(f"{title:16} {path:14} p50 {row['p50']:8.1f} ms  p99 {row['p99']:8.1f} ms  max {row['max']:8.1f} ms  "
              f"failed {row['failed']}/{row['n']}")
    if pid:
        print(f"{title:16} peak of the daemon {peak_mib(pid):.0f} MiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("--pid", type=int, help="of the daemon, for its memory")
    parser.add_argument("--key", help="of the tenant that is measured")
    parser.add_argument("--attacker-key", help="of the tenant that attacks")
    parser.add_argument("--attack", action="append", choices=[*ATTACKS, "all", "none"])
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    host, port = options.address.rsplit(":", 1)
    address = (host, int(port))
    for name in options.attack or ["none", *ATTACKS, "all"]:
        with attacked(address, options.attacker_key, {"none": [], "all": [*ATTACKS]}.get(name, [name])):
            time.sleep(0 if name == "none" else 3)
            show(name, measure(address, options.key, options.seconds), options.pid)


if __name__ == "__main__":
    main()
