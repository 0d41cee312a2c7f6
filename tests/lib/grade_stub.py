"""A server of POST /v1/grade with scripted answers, for clients of gradings.

    with GradeStub(['masked', 'passed']) as stub:
        ... stub.url, stub.requests

The n-th request gets the n-th entry of the script; the last entry serves all further requests.  An entry is a name of a
method answer_NAME below, or a function that gets the handler and the requested lines.
"""

import http.server
import json
import threading


def result(passed=True, **more):
    """A result as the daemon writes it, without the fields that no client of trainers reads."""
    reward = {'binary': float(passed), 'partial': float(passed), 'first_fail_index': None if passed else 0, 'passed': int(passed), 'total': 1}
    return {'schema': '2', 'status': 'completed', 'all_passed': passed, 'score': float(passed), 'mask': False, 'retryable': False, 'reward': reward,
            'total': 1, 'passed': int(passed), 'cases': [], 'error': None, **more}


def masked(retryable=True, code='engine_error'):
    return result(False, status='engine_error', score=None, mask=True, retryable=retryable, reward=None,
                  error={'code': code, 'message': 'the worker was lost'})


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_POST(self):
        text = self.rfile.read(int(self.headers['Content-Length']))
        lines = [json.loads(line) for line in text.splitlines() if line.strip()]
        stub = self.server.stub
        with stub.lock:
            number = len(stub.requests)
            stub.requests.append({'path': self.path, 'headers': dict(self.headers), 'lines': lines})
        entry = stub.script[min(number, len(stub.script) - 1)]
        (entry if callable(entry) else getattr(Handler, f'answer_{entry}'))(self, lines)

    def answer(self, status, content_type, body, **headers):
        self.send_response(status)
        self.send_header('Content-Type', content_type)
        self.send_header('Content-Length', str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), value)
        self.end_headers()
        self.wfile.write(body)

    def answer_lines(self, answers):
        """One line for each, last first: answers come in any order."""
        if self.headers['Content-Type'] != 'application/x-ndjson':
            status = 503 if answers[0].get('result', {}).get('mask') else 200
            return self.answer(status, 'application/json', json.dumps(answers[0]['result']).encode(), Retry_After='0')
        body = ''.join(json.dumps(answer) + '\n' for answer in reversed(answers)).encode()
        return self.answer(200, 'application/x-ndjson', body)

    def answer_all(self, lines, one):
        self.answer_lines([{'id': line.get('id'), 'line': number, 'result': one} for number, line in enumerate(lines, 1)])

    def answer_passed(self, lines):
        self.answer_all(lines, result())

    def answer_failed(self, lines):
        self.answer_all(lines, result(False))

    def answer_masked(self, lines):
        self.answer_all(lines, masked())

    def answer_broken_checker(self, lines):
        self.answer_all(lines, masked(retryable=False, code='checker_failed'))

    def answer_by_code(self, lines):
        """The text of the submission says what comes of it."""
        kinds = {'good': result(), 'bad': result(False), 'lost': masked(), 'part': {**result(False), 'reward': {**result()['reward'], 'binary': 0.0, 'partial': 0.5}}}
        self.answer_lines([{'id': line.get('id'), 'line': number, 'result': kinds[line.get('code') or line.get('completion')]}
                           for number, line in enumerate(lines, 1)])

    def answer_wrong_line(self, lines):
        """A problem that the server refuses."""
        self.answer_lines([{'id': line.get('id'), 'line': number, 'error': {'code': 'bad_request', 'message': 'cases has to be an array', 'field': '/cases'}}
                           for number, line in enumerate(lines, 1)])

    def answer_busy_line(self, lines):
        """All but the first find no room."""
        answers = [{'id': line.get('id'), 'line': number, 'error': {'code': 'capacity', 'message': 'too many runs wait'}}
                   for number, line in enumerate(lines, 1)]
        answers[0] = {'id': lines[0].get('id'), 'line': 1, 'result': result()}
        self.answer_lines(answers)

    def problem(self, status, code, **more):
        self.answer(status, 'application/problem+json', json.dumps({'status': status, 'code': code, 'detail': f'status {status}', **more}).encode(),
                    Retry_After=more.get('retry_after', '0'))

    def answer_limited(self, _):
        self.problem(429, 'capacity', quota='queue_max')

    def answer_draining(self, _):
        self.problem(503, 'capacity')

    def answer_forbidden(self, _):
        self.problem(401, 'unauthorized')

    def answer_cut(self, lines):
        """The first half of the answers, then the end of the connection."""
        answers = [{'id': line['id'], 'line': number, 'result': result()} for number, line in enumerate(lines, 1)]
        body = ''.join(json.dumps(answer) + '\n' for answer in answers).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/x-ndjson')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        half = len(answers) // 2
        self.wfile.write(''.join(json.dumps(answer) + '\n' for answer in answers[:half]).encode() + b'{"id": "')
        self.close_connection = True

    def answer_nothing(self, _):
        """The end of the connection before an answer."""
        self.close_connection = True


class GradeStub:
    """A server with these answers; a context manager."""

    def __init__(self, script):
        self.script = script
        self.requests = []
        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.stub = self
        self.url = f'http://127.0.0.1:{self.server.server_port}'
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
