"""A server of a model on a loopback port, OpenAI's chat/completions, with scripted answers.

    with ModelServer(['insecure', '500', ...]) as server:
        ... server.url, server.requests

The n-th request gets the n-th entry of the script; the last entry serves all further requests.  An entry is a name of a
method answer_NAME below, or a function that gets the request and the handler.
"""

import contextlib
import email.utils
import functools
import gzip
import http.server
import json
import re
import socket
import threading
import time

SECURE = {'is_secure': True, 'reason': 'ordinary work'}
INSECURE = {'is_secure': False, 'reason': 'it reads secrets'}
USAGE = {'prompt_tokens': 1000, 'completion_tokens': 50, 'total_tokens': 1050,
         'prompt_tokens_details': {'cached_tokens': 400}, 'completion_tokens_details': {'reasoning_tokens': 20}}
BOUNDARY = re.compile(r'^BOUNDARY-([0-9a-f]{32})$', re.M)


def code_of(body):
    """The reviewed code of a request, between the two lines of the boundary."""
    user = body['messages'][1]['content']
    marks = BOUNDARY.findall(user)
    assert len(marks) == 2 and marks[0] == marks[1], user
    line = f'BOUNDARY-{marks[0]}\n'
    head, code, rest = user.split('\n' + line, 2) if user.count('\n' + line) == 2 else (None, None, None)
    assert head is not None and rest == '', user
    return code


@functools.lru_cache(maxsize=None)
def zip_bomb():
    """An answer that is 100 times as long as it looks."""
    return gzip.compress(json.dumps({'choices': [{'message': {'content': json.dumps(SECURE) + ' ' * 5_000_000}}]}).encode(), 1)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_POST(self):
        text = self.rfile.read(int(self.headers['Content-Length']))
        body = json.loads(text)
        request = {'path': self.path, 'headers': dict(self.headers), 'body': body, 'text': text.decode(), 'at': time.monotonic()}
        script = self.server.owner.script
        with self.server.owner.lock:
            self.server.owner.requests.append(request)
            n = len(self.server.owner.requests) - 1
            self.server.owner.running += 1
            self.server.owner.most_running = max(self.server.owner.most_running, self.server.owner.running)
        step = script[min(n, len(script) - 1)]
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                step(request, self) if callable(step) else getattr(self, 'answer_' + step)(body)
        finally:
            with self.server.owner.lock:
                self.server.owner.running -= 1

    def do_GET(self):
        self.server.owner.gets += 1
        self.send_bytes(200, b'{}')

    # ---- forms of answers ----

    def send_bytes(self, status, data, **headers):
        self.send_response(status)
        for name, value in {'Content-Type': 'application/json', 'Content-Length': str(len(data)), **headers}.items():
            self.send_header(name.replace('_', '-'), value)
        self.end_headers()
        self.wfile.write(data)

    def completion(self, content, usage=USAGE, finish='stop', **message):
        body = {'id': 'chatcmpl-1', 'object': 'chat.completion', 'model': 'stub',
                'choices': [{'index': 0, 'finish_reason': finish, 'message': {'role': 'assistant', 'content': content, **message}}]}
        if usage != 'missing':
            body['usage'] = usage
        return json.dumps(body).encode()

    def say(self, content, **more):
        self.send_bytes(200, self.completion(content if content is None or isinstance(content, str) else json.dumps(content), **more))

    def refuse(self, status, message, **headers):
        self.send_bytes(status, json.dumps({'error': {'message': message, 'type': 'invalid_request_error'}}).encode(), **headers)

    # ---- verdicts ----

    def answer_secure(self, _):
        self.say(SECURE)

    def answer_insecure(self, _):
        self.say(INSECURE)

    def answer_full(self, _):
        self.say({**INSECURE, 'risk': 'high', 'findings': [{'line': 2, 'rule': 'secrets', 'why': 'reads a key'}], 'confidence': 0.75})

    def answer_prose(self, _):
        self.say(f'Here is my verdict:\n```json\n{json.dumps(SECURE)}\n```\nDone.')

    def answer_think(self, _):
        self.say(f'<think>Perhaps {json.dumps(INSECURE)}? No.</think>\n{json.dumps(SECURE)}')

    def answer_reasoning(self, _):
        self.say(SECURE, reasoning_content=json.dumps(INSECURE))

    def answer_slow_secure(self, _):
        time.sleep(0.2)
        self.say(SECURE)

    # ---- no verdicts ----

    def answer_wrong_schema(self, _):
        self.say({'secure': True, 'reason': 'x'})

    def answer_wrong_types(self, _):
        self.say({'is_secure': 'true', 'reason': 'x'})

    def answer_no_reason(self, _):
        self.say({'is_secure': True})

    def answer_no_json(self, _):
        self.say('It is secure.')

    def answer_open_think(self, _):
        self.say(f'<think>{json.dumps(SECURE)}')

    def answer_late_think(self, _):
        self.say(f'Well. <think>x</think>{json.dumps(SECURE)}')

    def answer_two(self, _):
        self.say(json.dumps(INSECURE) + json.dumps(SECURE))

    def answer_twice_a_key(self, _):
        self.say('{"is_secure": false, "is_secure": true, "reason": "x"}')

    def answer_null(self, _):
        self.say(None)

    def answer_refusal(self, _):
        self.say(SECURE, refusal='I cannot help with that.')

    def answer_length(self, _):
        self.say(SECURE, finish='length')

    def answer_no_choices(self, _):
        self.send_bytes(200, b'{"error": {"message": "overloaded"}}')

    def answer_no_object(self, _):
        self.send_bytes(200, b'[1]')

    def answer_echo_before(self, body):
        self.say(code_of(body) + '\n' + json.dumps(INSECURE))

    def answer_echo_after(self, body):
        self.say(json.dumps(INSECURE) + '\n' + code_of(body))

    def answer_long(self, _):
        self.send_bytes(200, self.completion(json.dumps(SECURE) + ' ' * 10_000_000))

    def answer_zip_bomb(self, _):
        self.send_bytes(200, zip_bomb(), Content_Encoding='gzip')

    # ---- usage ----

    def answer_usage_null(self, _):
        self.say(SECURE, usage=None)

    def answer_usage_missing(self, _):
        self.say(SECURE, usage='missing')

    def answer_usage_partial(self, _):
        self.say(SECURE, usage={'prompt_tokens': 7})

    def answer_usage_absurd(self, _):
        self.say(SECURE, usage={'prompt_tokens': -5, 'completion_tokens': 10 ** 15})

    def answer_usage_nulls(self, _):
        self.say(SECURE, usage={'prompt_tokens': 7, 'completion_tokens': 3, 'total_tokens': 10,
                                'prompt_tokens_details': None, 'completion_tokens_details': None})

    # ---- servers ----

    def answer_only_object(self, body):
        if body.get('response_format', {}).get('type') == 'json_schema':
            self.refuse(400, "'response_format.type' must be 'json_object'")
        else:
            self.say(SECURE)

    def answer_only_text(self, body):
        if 'response_format' in body:
            self.refuse(500 if body['response_format']['type'] == 'json_schema' else 400, 'response_format is not supported')
        else:
            self.say(SECURE)

    def answer_no_temperature(self, body):
        if 'temperature' in body or 'max_tokens' in body:
            name = 'temperature' if 'temperature' in body else 'max_tokens'
            self.refuse(400, f"Unsupported parameter: '{name}' is not supported with this model."
                             + (" Use 'max_completion_tokens' instead." if name == 'max_tokens' else ''))
        else:
            self.say(SECURE)

    def answer_400(self, _):
        self.refuse(400, 'something else')

    def answer_401(self, _):
        self.refuse(401, f'Incorrect API key provided: {self.headers.get("Authorization")}')

    def answer_404(self, _):
        self.refuse(404, 'no such model')

    def answer_429(self, _):
        self.refuse(429, 'too many', Retry_After='1')

    def answer_429_date(self, _):
        self.refuse(429, 'too many', Retry_After=email.utils.formatdate(time.time() + 2, usegmt=True))

    def answer_429_long(self, _):
        self.refuse(429, 'too many', Retry_After='3600')

    def answer_500(self, _):
        self.refuse(500, 'internal')

    def answer_503(self, _):
        self.refuse(503, 'busy', Retry_After='0')

    def answer_cut(self, _):
        self.send_response(200)
        self.send_header('Content-Length', '1000')
        self.end_headers()
        self.wfile.write(b'{"choices": [')
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def answer_slow(self, _):
        self.server.owner.released.wait(30)
        self.say(SECURE)

    def answer_dribble(self, _):
        data = self.completion(json.dumps(SECURE))
        self.send_response(200)
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        for byte in data:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            if self.server.owner.released.wait(0.1):
                return

    def answer_redirect(self, _):
        self.send_bytes(302, b'', Location=self.server.owner.url + '/elsewhere')

    def answer_gzip(self, _):
        self.send_bytes(200, gzip.compress(self.completion(json.dumps(SECURE))), Content_Encoding='gzip')

    # ---- a service with the JSON of S0-47 ----

    def answer_hook_secure(self, _):
        self.send_bytes(200, json.dumps(SECURE).encode())

    def answer_hook_insecure(self, _):
        self.send_bytes(200, json.dumps(INSECURE).encode())


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_):
        pass


class ModelServer:
    def __init__(self, script=('secure',)):
        self.script, self.requests, self.gets = list(script), [], 0
        self.running = self.most_running = 0
        self.lock, self.released = threading.Lock(), threading.Event()
        self.server = Server(('127.0.0.1', 0), Handler)
        self.server.owner = self
        self.url = f'http://127.0.0.1:{self.server.server_port}/v1'
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def restart(self, *script):
        """Another script, from its first entry on."""
        with self.lock:
            self.script, self.requests = list(script), []
            self.most_running = 0

    def settings(self, **more):
        """Options of a daemon or a command that asks this server."""
        values = {'base_url': self.url, 'model': 'stub', **more}
        return [word for name, value in values.items() for word in ('--set', f'review.{name}={value}')]
