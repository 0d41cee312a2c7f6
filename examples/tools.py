"""One program with a loop over 50 calls of a tool, beside the same as 50 turns of a model with one call each.

    caisson serve --listen 127.0.0.1:8080 --set engine.http_keyless=true &
    python3 examples/tools.py [http://127.0.0.1:8080]

The tool is served by this very script: calls come as events of the run, and their answers go back by tool-results.  A turn
is a run of its own here, without the seconds that a model takes to write the next call, and without the tokens of its
context that every answer fills.
"""

import json
import sys
import time
import urllib.request

URL = sys.argv[1] if len(sys.argv) > 1 else 'http://127.0.0.1:8080'
PRICES = {f'item-{number}': 100 + number * 7 % 40 for number in range(50)}
TOOL = {'name': 'price', 'description': 'The price of an item.',
        'input_schema': {'type': 'object', 'properties': {'item': {'type': 'string'}}, 'required': ['item']}}

LOOP = '''
prices = {}
for number in range(50):
    prices[f'item-{number}'] = tools.price(item=f'item-{number}')
cheapest = min(prices, key=prices.get)
print(cheapest, prices[cheapest], sum(prices.values()))
'''
TURN = "print(tools.price(item='item-%d'))"


def ask(path, body, **headers):
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), {'Content-Type': 'application/json', **headers})
    return urllib.request.urlopen(request, timeout=120)


def run(code):
    """The record of a run whose tool is ours."""
    body = {'language': 'python', 'code': code, 'profile': 'tools', 'tools': {'client': [TOOL], 'decode': True}}
    with ask('/v1/runs', body, Accept='application/x-ndjson') as events:
        for line in filter(bytes.strip, events):
            event = json.loads(line)
            if event['type'] == 'start':
                place = f'/v1/runs/{event["id"]}/tool-results'
            elif event['type'] == 'tool_call':
                answer = {'call': event['call'], 'result': PRICES[event['arguments']['item']]}
                ask(place, {'results': [answer]}).close()
            elif event['type'] == 'end':
                return event['record']


def main():
    begun = time.monotonic()
    record = run(LOOP)
    loop = time.monotonic() - begun
    print(f'one program: {record["stdout"].strip()} ({record["tools"]["calls"]} calls, {loop * 1000:.0f} ms, '
          f'{len(record["stdout"])} bytes for a model to read)')
    begun = time.monotonic()
    read = sum(len(run(TURN % number)['stdout']) for number in range(50))
    turns = time.monotonic() - begun
    print(f'50 turns: 50 calls, {turns * 1000:.0f} ms, and {read} bytes, each read again in every turn that follows')


if __name__ == '__main__':
    main()
