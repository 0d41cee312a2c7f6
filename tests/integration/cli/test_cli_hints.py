"""What a failed run is told to do: in the words of its caller, and by the language that it is in."""

import pytest

from cli import caisson, run

NOTHING_OUTSIDE = 'no network in this sandbox'
MISSES = [
    ('python', 'import urllib.request; urllib.request.urlopen("http://example.org")'),
    ('python', 'import urllib.request; urllib.request.urlopen("http://192.0.2.1/")'),
    ('python', 'import socket; socket.create_connection(("192.0.2.1", 80))'),
    ('python', 'import socket; socket.create_connection(("2001:db8::1", 80))'),
    ('python', 'import socket; socket.getaddrinfo("example.org", 80)'),
    ('python', 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))'),
    ('python', 'import http.client; http.client.HTTPSConnection("example.org").request("GET", "/")'),
    ('python', 'import http.client; http.client.HTTPConnection("127.0.0.1", 81).request("GET", "/")'),
    ('python', 'import asyncio; asyncio.run(asyncio.open_connection("example.org", 80))'),
    ('python', 'import subprocess; subprocess.run(["curl", "-s", "http://example.org"], check=True)'),
    ('python', 'import socket\ntry: socket.gethostbyname("example.org")\nexcept OSError as e: raise RuntimeError("no weather") from e'),
    ('python', 'import socket, sys\ntry: socket.gethostbyname("example.org")\nexcept OSError as e: sys.exit(f"weather: {e}")'),
    ('javascript', 'await fetch("http://example.org")'),
    ('javascript', 'await fetch("http://192.0.2.1/")'),
    ('javascript', 'require("http").get("http://example.org")'),
    ('javascript', 'require("https").request("https://192.0.2.1/").end()'),
    ('javascript', 'require("net").connect(80, "192.0.2.1")'),
    ('javascript', 'require("dns").lookup("example.org", (error) => { throw error; })'),
    ('javascript', 'await require("dns").promises.resolve4("example.org")'),
    ('javascript', 'require("child_process").execSync("curl -sS http://example.org")'),
    ('javascript', 'fetch("http://example.org").catch((error) => { console.error(error); process.exit(1); })'),
    ('typescript', 'const answer: Response = await fetch("http://example.org")'),
    ('bash', 'curl http://example.org'),
    ('bash', 'curl -s https://192.0.2.1/'),
    ('bash', 'set -e; page=$(curl -fsS http://example.org); echo "$page"'),
    ('bash', 'curl -sf http://example.org -o page || exit 1'),
    ('bash', 'wget http://example.org'),
    ('bash', 'wget -qO- http://192.0.2.1/'),
    ('bash', 'exec 3<>/dev/tcp/192.0.2.1/80'),
    ('bash', 'echo > /dev/tcp/example.org/80'),
    ('bash', 'python3 -c "import urllib.request as u; u.urlopen(\'http://example.org\')"'),
]


@pytest.mark.parametrize('language, code', MISSES, ids=range(len(MISSES)))
def test_a_program_that_misses_the_network_is_told_so(language, code):
    record = run('-l', language, '-c', code)
    assert record['status'] == 'failed' and NOTHING_OUTSIDE in record['error']['hint'], record['error']
    assert record['error']['hint'] in record['feedback']


@pytest.mark.parametrize('language, code', [
    ('python', 'raise ValueError("x")'), ('python', 'print("Network is unreachable"); 1/0'), ('javascript', 'null.x'), ('javascript', 'console.error("fetch failed"); null.x'),
    ('bash', 'echo curl; exit 3'), ('bash', 'exit 6'), ('bash', 'grep curl /nonexistent')], ids=range(7))
def test_one_that_fails_of_something_else_is_not(language, code):
    record = run('-l', language, '-c', code)
    assert record['status'] == 'failed' and 'network' not in (record['error'].get('hint') or ''), record['error']


@pytest.mark.parametrize('language, code, words', [
    ('javascript', 'JSON.parse("{")', 'malformed'), ('javascript', 'new Function("(")', 'malformed'), ('javascript', 'new RegExp("(")', 'malformed'),
    ('javascript', 'if (', 'JavaScript syntax error'), ('typescript', 'let x: = 1', 'TypeScript'), ('javascript', 'undefined.x', 'undefined or null'),
    ('javascript', '(1)()', 'no function'), ('javascript', 'x', 'not defined'), ('javascript', '(function f() { f(); })()', 'Recursion'),
    ('javascript', 'require("fs").readFileSync("nope")', 'File not found'), ('javascript', 'require("nope")', 'not installed'),
    ('javascript', 'new Array(-1)', 'Invalid value'), ('javascript', 'require("fs").writeFileSync("/usr/x", "")', 'read-only'),
    ('python', 'open("/usr/x", "w")', 'read-only'), ('bash', 'touch /usr/x', 'read-only'),
    ('bash', 'if true; then', 'Bash syntax error'), ('python', 'if True', 'Python syntax error'), ('python', 'if True:\n1', 'Indentation error')])
def test_advice_is_of_the_language(language, code, words):
    """S1-53, S3-47, U-48."""
    hint = run('-l', language, '-c', code)['error']['hint']
    assert words in hint and (language == 'python' or ('Python' not in hint and 'ndentation' not in hint)), hint


@pytest.mark.parametrize('code, options, words', [
    ('while True: pass', ['--timeout', '300ms'], 'wall_ms=300 (--timeout, CAISSON_LIMITS_WALL_MS)'),
    ('while True: pass', ['--cpu-time', '300ms'], 'cpu_ms=300 (--cpu-time, CAISSON_LIMITS_CPU_MS)'),
    ('x = bytearray(1 << 30)', ['--memory', '100MiB'], 'memory_bytes=104857600 (--memory, CAISSON_LIMITS_MEMORY_BYTES)'),
    ('open("f", "wb").write(bytes(1 << 21))', ['--disk', '1MiB'], 'disk_bytes=1048576 (--disk, CAISSON_LIMITS_DISK_BYTES)'),
    ('print("x" * 99)', ['--output', '9', '--output-action', 'kill'], 'output_bytes=9 (--output, CAISSON_LIMITS_OUTPUT_BYTES)')])
def test_the_command_line_is_told_its_option(code, options, words):
    assert words in run('-l', 'python', '-c', code, *options)['error']['hint']
    done = caisson('run', '-l', 'python', '-c', code, *options)
    assert words in done.err and all(line.count('(--') == (3 if 'disk_files' in line else 1) for line in done.err.splitlines() if line.startswith('hint: ')), done.err


@pytest.mark.parametrize('options, words', [
    (['-c', '1'], '(--language)'), (['-l', 'python', '-c', '1', '--policy', 'x'], '(--policy)'), (['-l', 'python', '-c', '1', '--profile', 'x'], '(--profile)'),
    (['-l', 'python', '-c', '1', '--memory', '2GiB', '--set', 'ceilings.memory_bytes=1GiB'], '(--memory)'), (['-l', 'python', '-c', '1', '--allow', 'example.org'], '(--network)'),
    (['-l', 'python', '-c', '1', '--file', '/dev/null:f'], '(--file)'), (['-l', 'python', '-c', '1', '--file', '/etc/passwd:f', '--input', '9'], '(--input, ')])
def test_a_refusal_names_the_option(options, words):
    done = caisson('run', *options)
    assert done.status == 64 and words in done.err and done.err.count(words) == 1, done.err


def test_a_request_without_a_program_says_how_one_is_given():
    done = caisson('run', '--request', '-', stdin=b'{"language": "bash"}')
    assert done.status == 64 and 'there is no program; give code (-c CODE, a file, or - for standard input)' in done.err, done.err


def test_warnings_name_the_option():
    warnings = {w['code']: w['text'] for w in run('-l', 'python', '-c', 'print("x" * 99)\n"y" * 999', '--output', '9', '--value', '99')['warnings']}
    assert '(--output, CAISSON_LIMITS_OUTPUT_BYTES)' in warnings['output_truncated'] and '(--value, ' in warnings['return_value_truncated']


@pytest.mark.parametrize('code, told', [('```python\nprint(1)\n```\n', True), ('Here it is:\n\n```\nprint(1)\n```', True), ('print(1\n', False),
                                        ('x = """\n```\n"""\ny = (\n', True), ('print("```")\nx = (\n', False)])
def test_a_program_in_fences_is_told_how_to_send_it(code, told):
    """S0-92: without extract a fenced program does not parse, and the record says what to do."""
    record = run('-l', 'python', '-c', code)
    assert record['status'] == 'syntax_error'
    assert any('set extract to last_fence' in line for line in record['feedback']) == told
    assert run('-l', 'python', '--extract', 'last_fence', '-c', '```python\nprint(1)\n```\n')['stdout'] == '1\n'
