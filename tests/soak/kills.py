#!/usr/bin/python3
"""Runs through gateways while workers and gateways are killed, stopped and cut off; and how often each was carried out.

    tests/soak/kills.py                                    10,000 runs, 300 kills of workers, 20 of gateways
    tests/soak/kills.py --runs 500 --workers 30 --gateways 3
    tests/soak/kills.py --pods                             the same with pods of the stand-in API server, and 100 broken watches
    tests/soak/kills.py --program build-asan/caisson-gateway

Each run has a number of its own as task_id, and the audits of the workers have a row with it for each time that a run began.
A worker keeps its state folder from one life to the next, so no row is lost.  Per run is checked:

    at most one row in all audits, whatever was answered, how often it was asked for and by which gateway
    exactly one row, with the id of the record, where a record of a finished program was answered
    no row where GET /v1/idempotency-keys/{key} was answered 404, twice within two seconds
    an answer to each request within 60 s

A client whose connection to a gateway breaks asks any gateway: it sends the run again with the same Idempotency-Key, or asks
for the answer of the key, or for the run by its id.
"""

import argparse
import collections
import http.client
import json
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / 'lib')]

from killed_fleet import Fleet     # noqa: E402
from killed_pods import POOL_MAX, PodFleet     # noqa: E402

LIMIT = 60              # seconds that an answer may take
BROKEN = (ConnectionError, http.client.HTTPException)
GATEWAY_SETTINGS = ('gateway.wait=10s', 'gateway.heartbeat=300ms', 'gateway.down_after=1500ms')
WORKER_SETTINGS = ('engine.pool_min=1', 'engine.pool_max=2', 'engine.running_max=8', 'engine.queue_max=100')


class Run:
    """One run and what became of it."""

    def __init__(self, number, chance):
        self.number, self.kind, self.key = number, chance.choice(('key', 'key', 'key', 'plain', 'stream', 'later')), None
        self.patient = chance.random() < 0.85      # else the client leaves, and asks again
        self.body = {'language': 'bash', 'code': f'sleep {chance.uniform(0, 0.15):.3f}; echo {number}', 'task_id': f'n{number}'}
        if self.kind == 'key' or (self.kind == 'later' and chance.random() < 0.7):
            self.key = f'key-{number}'
        self.id = self.end = self.record = None
        self.requests, self.longest = [], 0.0

    def is_done(self):
        return self.end is not None


class Storm:
    def __init__(self, fleet, runs, clients, seed):
        self.chance, self.fleet = random.Random(seed), fleet
        self.runs = [Run(number, self.chance) for number in range(runs)]
        self.clients, self.left, self.wrong, self.done = clients, collections.deque(self.runs), [], collections.Counter()
        self.over, self.began, self.troubles = threading.Event(), time.monotonic(), []

    def now(self):
        return time.monotonic() - self.began

    def note(self, run, text):
        """A line of what the client of a run saw."""
        run.requests.append(f'{self.now():9.3f} s: {text}')

    def story(self, run):
        """What the client saw, and the troubles meanwhile."""
        times = [float(line.split(' s: ')[0]) for line in run.requests] or [0]
        meanwhile = [f'{at:9.3f} s: {text}' for at, text in self.troubles if times[0] - 5 <= at <= times[-1] + 1]
        return ''.join(f'\n    {line}' for line in sorted(run.requests + meanwhile, key=lambda line: float(line.split(' s: ')[0])))

    # ---- clients ----

    def ask(self, run, method, path, body=None, headers=None, timeout=LIMIT):
        """(status, headers, document), or None: the connection broke."""
        gateway = random.choice(self.fleet.gateways)
        began = time.monotonic()
        try:
            answer = gateway.ask(method, path, body, headers, timeout)
        except TimeoutError:
            if timeout == LIMIT:
                self.wrong.append(f'n{run.number} ({run.kind}): no answer of {gateway.name} to {method} {path} in {LIMIT} s')
                answer = 0, {}, {}
            else:
                answer = None
        except BROKEN as error:
            self.note(run, f'{gateway.name} {method} {path}: {error!r}')
            time.sleep(0.05)
            return None
        run.longest = max(run.longest, time.monotonic() - began)
        self.note(run, f'{gateway.name} {method} {path}: {f"{answer[0]} {str(answer[2])[:300]}" if answer else "the client left"}')
        return answer

    def ended(self, run, end, record=None):
        run.end, run.record = end, record
        self.done[f'{run.kind}: {end}'] += 1

    def take_record(self, run, status, record):
        """The record of a run is its end."""
        if status == 502 or (record.get('error') or {}).get('code') == 'worker_lost':
            self.ended(run, 'lost', record)
        elif record.get('status') == 'completed' and record.get('stdout') == f'{run.number}\n':
            self.ended(run, 'completed', record)
        elif record.get('status') in ('engine_error', 'capacity', 'cancelled'):
            self.ended(run, record['status'], record)
        else:
            self.wrong.append(f'n{run.number}: an unexpected record: {record}')
            self.ended(run, 'wrong', record)

    def take(self, run, answer):
        """What an answer to POST /v1/runs, or to a question for its record, means."""
        status, _, document = answer
        if status in (429, 503, 409):
            time.sleep(0.05)
        elif status == 202 and 'id' in document:
            run.id = document['id']
            self.follow(run)
        elif status in (200, 502):
            self.take_record(run, status, document if isinstance(document, dict) else {})
        elif status:
            self.wrong.append(f'n{run.number} ({run.kind}): answered {status}: {document}')
            self.ended(run, 'wrong')
        else:
            self.ended(run, 'hung')

    def follow(self, run):
        """The end of a run that was accepted, by its id, from any gateway."""
        deadline = time.monotonic() + 2 * LIMIT
        while not run.is_done():
            answer = self.ask(run, 'GET', f'/v1/runs/{run.id}')
            if answer and answer[0] == 404:
                self.wrong.append(f'n{run.number} ({run.kind}): {run.id} was accepted and is not known:{self.story(run)}')
                self.ended(run, 'forgotten')
            elif answer and answer[0] == 410:
                self.ended(run, 'lost')
            elif answer and answer[0] != 202:
                self.take(run, answer)
            elif answer:
                time.sleep(0.05)
            if not run.is_done() and time.monotonic() > deadline:
                self.wrong.append(f'n{run.number}: {run.id} does not end')
                self.ended(run, 'hung')

    def with_key(self, run):
        """Send it until it has an end; the key makes that safe."""
        headers = {'Idempotency-Key': run.key} | ({'Prefer': 'respond-async'} if run.kind == 'later' else {})
        while not run.is_done():
            answer = self.ask(run, 'POST', '/v1/runs', run.body, headers, LIMIT if run.patient else 0.05)
            run.patient = True
            if answer:
                self.take(run, answer)
            elif random.random() < 0.5:
                self.ask_for_key(run)

    def ask_for_key(self, run):
        """The answer of a request whose connection broke.  What is on its way to a worker still is not known for a moment."""
        for pause in (random.choice((0, 0.2, 1)), 2):
            time.sleep(pause)
            answer = self.ask(run, 'GET', f'/v1/idempotency-keys/{run.key}')
            if not answer or answer[0] == 202:
                return
            if answer[0] != 404:
                self.take(run, answer)
                return
        self.ended(run, 'never accepted')

    def without_key(self, run):
        """It may be sent again only where a gateway says that it was not accepted."""
        headers = {'Prefer': 'respond-async'} if run.kind == 'later' else {}
        while not run.is_done():
            answer = self.ask(run, 'POST', '/v1/runs', run.body, headers)
            if answer:
                self.take(run, answer)
            else:
                self.ended(run, 'unknown')

    def stream(self, run):
        while not run.is_done():
            gateway, events, status = random.choice(self.fleet.gateways), [], 0
            connection = gateway.open(LIMIT)
            try:
                connection.request('POST', '/v1/runs', json.dumps(run.body), {'Accept': 'application/x-ndjson', 'Content-Type': 'application/json'})
                answer = connection.getresponse()
                status = answer.status
                if status == 200:
                    for line in answer:
                        if line.strip():
                            events.append(json.loads(line))
                            if events[-1]['type'] == 'start':
                                run.id = events[-1]['id']
                else:
                    document = json.loads(answer.read())
            except TimeoutError:
                self.wrong.append(f'n{run.number}: a stream of {gateway.name} gave nothing in {LIMIT} s after {events[-1:]}')
                self.ended(run, 'hung')
            except (*BROKEN, json.JSONDecodeError) as error:
                self.note(run, f'{gateway.name} stream: {error!r} after {events[-1:]}')
            finally:
                connection.close()
            ends = [event for event in events if event['type'] in ('end', 'error')]
            self.note(run, f'{gateway.name} stream: {status} {str(ends)[:300]}')
            if run.is_done():
                return
            if len(ends) > 1 or (ends and events[-1] is not ends[0]):
                self.wrong.append(f'n{run.number}: a stream with more than one end: {events}')
            if ends and ends[0]['type'] == 'end':
                self.take_record(run, 200, ends[0]['record'])
            elif ends:
                self.ended(run, 'lost', {'id': ends[0].get('run')})
            elif run.id:
                self.follow(run)
            elif status not in (0, 200):
                self.take(run, (status, {}, document))
            else:
                self.ended(run, 'unknown')

    def client(self):
        while not self.over.is_set():
            try:
                run = self.left.popleft()
            except IndexError:
                return
            try:
                if run.key:
                    self.with_key(run)
                elif run.kind == 'stream':
                    self.stream(run)
                else:
                    self.without_key(run)
            except Exception as error:      # pylint: disable=broad-except  # a thread must not end unseen
                self.wrong.append(f'n{run.number}: {error!r}')
                self.ended(run, 'wrong')

    # ---- troubles ----

    def act(self, what):
        """One trouble.  How many it counts for, or what it was."""
        chance, fleet = self.chance, self.fleet
        if what == 'gateway':
            gateway = chance.choice(fleet.gateways)
            gateway.kill()
            time.sleep(chance.choice((0, 0.2, 1)))
            gateway.start()
            return f'{gateway.name} killed'
        elif what == 'watch':
            return fleet.break_watches()
        elif what == 'cut':
            fleet.cutters[0].cut()
        elif what == 'stop':
            worker = chance.choice(fleet.workers)
            worker.stop()
            time.sleep(chance.choice((0.2, 1, 3)))
            worker.go_on()
        elif what == 'end':
            process = chance.choice((*fleet.workers, *fleet.gateways))
            status = process.end()
            if status != 0:
                self.wrong.append(f'{process.name} ended with {status} after SIGTERM:\n{process.log[-2000:]}')
            process.start()
        elif hasattr(fleet, 'kill_worker'):
            return fleet.kill_worker()
        else:
            worker = chance.choice(fleet.workers)
            worker.kill()
            time.sleep(chance.choice((0, 0, 0.3, 2)))
            worker.start()
            return f'{worker.name} killed'
        return 1

    def trouble(self, wanted, pause):
        """So many troubles of each kind; what there was."""
        counts = collections.Counter()
        while left := {what: n - counts[what] for what, n in wanted.items() if counts[what] < n}:
            time.sleep(self.chance.uniform(0.3, 1.7) * pause)
            what = self.chance.choices(list(left), left.values())[0]
            at = self.now()
            told = self.act(what)
            self.troubles.append((at, f'{what} {told if isinstance(told, str) else ""}'))
            counts[what] += told if isinstance(told, int) else 1
        return counts

    # ---- judgement ----

    def judge(self):
        rows = collections.defaultdict(list)
        for worker in self.fleet.workers:
            for row in worker.rows():
                rows[row.get('task_id')].append((worker.name, row))
        for run in self.runs:
            own, name = rows[f'n{run.number}'], f'n{run.number} ({run.kind}, {run.end})'
            facts = '; '.join(f'{worker} {row["id"]} {row["status"]} {row["started_at"]}' for worker, row in own)
            if len(own) > 1:
                self.wrong.append(f'{name} began {len(own)} times: {facts}{self.story(run)}')
            if run.end == 'completed' and (len(own) != 1 or own[0][1]['id'] != run.record['id']):
                self.wrong.append(f'{name} has the record {run.record["id"]} and in the audit: {facts}{self.story(run)}')
            if run.end == 'never accepted' and own:
                self.wrong.append(f'{name} is in the audit: {facts}{self.story(run)}')
            if run.end is None:
                self.wrong.append(f'{name} has no end')
            if run.longest > LIMIT:
                self.wrong.append(f'{name} took {run.longest:.1f} s')

    def play(self, wanted, pause, seconds):
        """Everything; the counts of troubles."""
        with self.fleet as fleet:
            threads = [threading.Thread(target=self.client, daemon=True) for _ in range(self.clients)]
            for thread in threads:
                thread.start()
            counts = self.trouble(wanted, pause)
            for gateway in fleet.gateways:
                gateway.ready()
            deadline = time.monotonic() + seconds
            for thread in threads:
                thread.join(max(0, deadline - time.monotonic()))
            self.over.set()
            for thread in threads:
                thread.join(3 * LIMIT)
            for gateway in fleet.gateways:
                gateway.has_ready(2)
            self.runs = [run for run in self.runs if run not in self.left]
            time.sleep(2)          # runs that lost their client go on
            self.judge()
        return counts


def fleet_of(folder, program=None, gateways=2):
    return Fleet(folder, 3, gateways, worker_settings=WORKER_SETTINGS, gateway_program=program, cutters=1, gateway_settings=GATEWAY_SETTINGS)


def pods_of(folder, program=None, gateways=3):
    # Few slots, so that the pool grows and shrinks.
    return PodFleet(folder, gateways, worker_settings=(*WORKER_SETTINGS, 'engine.running_max=2'), gateway_program=program,
                    gateway_settings=(*GATEWAY_SETTINGS, 'kubernetes.grace=60', 'kubernetes.idle=1s', 'kubernetes.scale_down_after=1s'))


def main():
    parser = argparse.ArgumentParser(description='Kill workers and gateways while runs go on.')
    parser.add_argument('--runs', type=int, default=10000)
    parser.add_argument('--workers', type=int, default=300, help='kills of workers')
    parser.add_argument('--gateways', type=int, default=20, help='kills of gateways')
    parser.add_argument('--watches', type=int, default=100, help='broken watches, with --pods')
    parser.add_argument('--pods', action='store_true', help='three gateways in owned mode, before the stand-in API server')
    parser.add_argument('--clients', type=int, default=8)
    parser.add_argument('--pause', type=float, default=1.0, help='mean seconds between two troubles')
    parser.add_argument('--seconds', type=float, default=3600, help='the most that the clients may take after the last trouble')
    parser.add_argument('--seed', type=int, default=None)
    parser.add_argument('--program', help='another caisson-gateway')
    options = parser.parse_args()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    print(f'seed {seed}', flush=True)
    with tempfile.TemporaryDirectory(prefix='caisson-kills-', dir='/var/tmp', ignore_cleanup_errors=True) as folder:
        fleet = (pods_of if options.pods else fleet_of)(Path(folder), options.program)
        storm = Storm(fleet, options.runs, options.clients, seed)
        more = {'watch': options.watches} if options.pods else {'stop': options.workers // 6, 'cut': options.workers // 4, 'end': options.workers // 6}
        counts = storm.play({'worker': options.workers, 'gateway': options.gateways, **more}, options.pause, options.seconds)
        if options.pods:
            print(f'the most pods that there were: {fleet.census.most}, allowed {POOL_MAX}')
            if fleet.census.most > POOL_MAX:
                storm.wrong.append('there were more pods than kubernetes.pool_max')
        print(f'{len(storm.runs)} runs; {dict(counts)}; longest answer {max(run.longest for run in storm.runs):.1f} s')
        for what, n in sorted(storm.done.items()):
            print(f'  {what:28} {n}')
        for one in storm.wrong:
            print(one)
    sys.exit(bool(storm.wrong))


if __name__ == '__main__':
    main()
