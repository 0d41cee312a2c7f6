"""Attacks of a hostile neighbour by bodies of requests: as much as the ceilings allow, as often as it goes.

Each function takes the address of a daemon (host, port), the neighbour's key or None, and an event that ends the attack.
"""

import http.client

MIB = 2**20


def send(address, key, path, body, kind='application/json'):
    """Post a body; an answer of any status is read."""
    connection = http.client.HTTPConnection(*address, timeout=120)
    headers = {'Content-Type': kind} | ({'Authorization': f'Bearer {key}'} if key else {})
    try:
        connection.request('POST', path, body, headers)
        connection.getresponse().read()
    except OSError:
        pass        # refused, or cut by the daemon
    finally:
        connection.close()


def attack_many_values(address, key, stop):
    """A body of 58 MiB with 29 million values, to each route that takes a program."""
    body = b'{"code": "1", "x": [' + b'1,' * (29 * MIB) + b'1]}'
    check = b'{"code": "1", "x": [' + b'1,' * (3 * MIB) + b'1]}'
    while not stop.is_set():
        for path, text in (('/v1/runs', body), ('/v1/check', check), ('/v1/grade', body)):
            send(address, key, path, text)


def attack_allowed_values(address, key, stop):
    """As many values as the ceilings allow."""
    body = b'{"language": "bash", "code": "true", "x": [' + b'1,' * 199000 + b'1]}'
    cases = b'{"code": "1", "cases": [' + b'{},' * 490000 + b'{}]}'
    while not stop.is_set():
        send(address, key, '/v1/runs', body)
        send(address, key, '/v1/grade', cases)


def attack_long_lines(address, key, stop):
    """Lines of 15 MB in one body of a bulk request, one after the other; then many that are empty objects."""
    line = b'{"code": "1", "x": [' + b'1,' * 7500000 + b'1]}\n'
    while not stop.is_set():
        send(address, key, '/v1/runs/bulk', line * 4, 'application/x-ndjson')
        send(address, key, '/v1/runs/bulk', b'{}\n' * 200000, 'application/x-ndjson')
