"""A hostile neighbour whose runs leave large results.  Standard library only.

Each attack is a function of an address (host, port), the key of a tenant and an event: it sends runs one after another
until the event is set, and gives the number of runs that ended with a record.  Limits are within the default ceilings.
"""

import http.client
import json

FILES = """
for folder in range(90):
    import os
    os.mkdir(f'd{folder}')
    for number in range(1000):
        open(f'd{folder}/{number}', 'w').close()
"""
CONTROL_CHARACTERS = """
import sys
for _ in range(50):
    sys.stdout.write(chr(1) * 1_000_000)
"""
EXPORTS = """
for number in range(3000):
    with open(f'{number}.txt', 'w') as file:
        file.write(str(number))
"""
LARGE_EXPORT = """
with open('large', 'wb') as file:
    for number in range(400):
        file.write(number.to_bytes(2, 'big') * 500_000)
"""
VALUE = """
[[number] for number in range(1_500_000)]
"""

MANY_FILES = {'language': 'python', 'code': FILES,
              'limits': {'disk_files': 200_000, 'output_files': 100_000, 'memory_bytes': 1 << 30}}
MUCH_OUTPUT = {'language': 'python', 'code': CONTROL_CHARACTERS, 'limits': {'output_bytes': 60_000_000}}
MANY_EXPORTS = {'language': 'python', 'code': EXPORTS, 'limits': {'output_files': 5000}, 'exports': [{'pattern': '*.txt'}]}
ONE_LARGE_EXPORT = {'language': 'python', 'code': LARGE_EXPORT, 'exports': [{'pattern': 'large'}],
                    'limits': {'disk_bytes': 500_000_000, 'memory_bytes': 1 << 30}}
LARGE_VALUE = {'language': 'python', 'code': VALUE,
               'limits': {'value_bytes': 16_000_000, 'memory_bytes': 1 << 30}}


def send(address, key, request):
    """The status of the answer, whose body is read and thrown away."""
    connection = http.client.HTTPConnection(*address, timeout=300)
    try:
        connection.request('POST', '/v1/runs', json.dumps(request),
                           {'Content-Type': 'application/json', **({'Authorization': f'Bearer {key}'} if key else {})})
        answer = connection.getresponse()
        while answer.read(1 << 20):
            pass
        return answer.status
    finally:
        connection.close()


def repeat(address, key, stop, request):
    ended = 0
    while not stop.is_set():
        try:
            ended += send(address, key, request) == 200
        except (OSError, http.client.HTTPException):
            stop.wait(0.1)
    return ended


def attack_many_files(address, key, stop):
    """90,000 files, each of them listed in the record."""
    return repeat(address, key, stop, MANY_FILES)


def attack_control_characters(address, key, stop):
    """50 MB of output that JSON writes with six bytes for each."""
    return repeat(address, key, stop, MUCH_OUTPUT)


def attack_exports(address, key, stop):
    """3,000 files that are kept."""
    return repeat(address, key, stop, MANY_EXPORTS)


def attack_large_export(address, key, stop):
    """A kept file of 400 MB."""
    return repeat(address, key, stop, ONE_LARGE_EXPORT)


def attack_value(address, key, stop):
    """A value of 16 MB with many small parts."""
    return repeat(address, key, stop, LARGE_VALUE)
