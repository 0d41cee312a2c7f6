"""The reviewer as a service: retries, budget, places, cache, circuit breaker, cost, keys, programs and services of one's own."""

import concurrent.futures
import json
import os
import signal
import stat
import time
from pathlib import Path

import pytest

from cli import caisson
from daemon import until
from model_server import ModelServer
from test_review import Place
from web import Web

KEY = 'sk-secret-0123456789abcdef'
NANO = {'price.input': '0.25', 'price.output': '1', 'price.cached': '0.025'}


def secret(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


def together(place, codes):
    with concurrent.futures.ThreadPoolExecutor(len(codes)) as pool:
        return list(pool.map(place.run, codes))


# ---- retries and budget (S0-54) ----

@pytest.mark.parametrize('script, calls, least', [(['429', 'secure'], 2, 1.0), (['429_date', 'secure'], 2, 0.9), (['503', '500', 'secure'], 3, 0),
                                                  (['cut', 'secure'], 2, 0)])
def test_retries(tmp_path, script, calls, least):
    """S0-54: three attempts, with pauses by chance, or as long as Retry-After says."""
    with Place(tmp_path, mode='required', script=script) as place:
        review = place.run('print(1)')['review']
        assert review['verdict'] == 'secure' and review['attempts'] == calls == review['usage']['calls']
        times = [request['at'] for request in place.server.requests]
        assert len(times) == calls and times[1] - times[0] >= least


@pytest.mark.parametrize('answer', ['400', '401', '404', 'wrong_schema', 'length'])
def test_no_retry(tmp_path, answer):
    with Place(tmp_path, mode='required', script=[answer, 'secure']) as place:
        assert place.run('print(1)')['status'] == 'blocked'
        assert len(place.server.requests) == 1


def test_a_retry_that_would_pass_the_budget(tmp_path):
    """S0-54: one budget for all attempts; a pause beyond it is not begun."""
    with Place(tmp_path, mode='required', budget='3s', script=['429_long']) as place:
        begun = time.monotonic()
        record = place.run('print(1)')
        assert record['status'] == 'blocked' and time.monotonic() - begun < 3
        assert len(place.server.requests) == 1


def test_the_budget_ends_all(tmp_path):
    with Place(tmp_path, mode='required', budget='1s', timeout='30s', script=['slow']) as place:
        begun = time.monotonic()
        record = place.run('print(1)')
        assert time.monotonic() - begun < 10
        assert record['review']['error'] and record['error']['code'] == 'review_unavailable'


def test_the_ladder_is_remembered(tmp_path):
    """Steps of the ladder are no attempts, and the server is asked once for what it refuses."""
    with Place(tmp_path, mode='required', attempts=1, script=['only_text']) as place:
        assert place.run('print(1)')['review']['attempts'] == 3
        assert place.run('print(2)')['review']['attempts'] == 1
    for name in ('other', 'third'):
        (tmp_path / name).mkdir()
    with Place(tmp_path / 'other', mode='required', attempts=1, response_format='json_object', script=['only_text']) as place:
        assert place.run('print(1)')['status'] == 'blocked' and len(place.server.requests) == 1
    with Place(tmp_path / 'third', mode='required', attempts=1, script=['no_temperature']) as place:
        assert place.run('print(1)')['review']['attempts'] == 3
        assert 'max_completion_tokens' in place.server.requests[-1]['body']


# ---- places, cache, circuit breaker ----

def test_places_are_bounded(tmp_path):
    with Place(tmp_path, mode='required', concurrency=2, script=['slow_secure']) as place:
        records = together(place, [f'print({n})' for n in range(8)])
        assert all(record['review']['verdict'] == 'secure' for record in records)
        assert place.server.most_running <= 2


def test_waiting_counts_in_the_budget(tmp_path):
    with Place(tmp_path, mode='required', concurrency=1, budget='1s', timeout='1s', attempts=1, script=['slow']) as place:
        records = together(place, ['print(1)', 'print(2)', 'print(3)'])
        assert {record['error']['code'] for record in records} == {'review_unavailable'}


def test_the_cache(tmp_path):
    """Verdicts alone are remembered, by code, language, tools, prompt and model; the mode is no part of the key."""
    with Place(tmp_path, mode='advisory', cache=2, script=['secure']) as place:
        codes = ['echo 1', 'echo 2', 'echo 3']
        for code in codes + codes[2:]:
            last = place.run(code, 'bash')
        assert last['review']['cached'] and last['review']['mode'] == 'advisory' and len(place.server.requests) == 3
        assert place.run('echo 3', 'bash', review='required')['review']['mode'] == 'required' and len(place.server.requests) == 3
        assert not place.run('echo 1', 'bash')['review']['cached']          # the least recently used one
        assert not place.run('echo 3', 'bash', tools={'allow': ['other']})['review']['cached']
        place.server.restart('wrong_schema', 'secure')
        assert place.run('echo 9', 'bash')['review']['verdict'] == 'unavailable'
        assert place.run('echo 9', 'bash')['review']['verdict'] == 'secure'


def test_the_circuit_breaker(tmp_path):
    """Five failures in a row open it for 10 s; then one review tries."""
    with Place(tmp_path, mode='required', attempts=1, cache=0, script=['401']) as place:
        for n in range(5):
            place.run(f'print({n})')
        assert len(place.server.requests) == 5
        begun = time.monotonic()
        record = place.run('print(5)')
        assert record['error']['code'] == 'review_unavailable' and 'in a row' in record['review']['error']
        assert len(place.server.requests) == 5 and record['review']['attempts'] == 0
        place.server.restart('secure')
        until(lambda: place.run('print(6)')['status'] == 'completed', 30)
        assert time.monotonic() - begun > 8 and len(place.server.requests) == 1


def test_programs_cannot_open_the_breaker(tmp_path):
    """An answer without a verdict, or a refused question, is an answer: a tenant's programs do not close the reviewer for others."""
    with Place(tmp_path, mode='required', script=['400'] * 6 + ['two'] * 6 + ['secure']) as place:
        for n in range(12):
            assert place.run(f'print({n})')['status'] == 'blocked'
        assert place.run('print(12)')['status'] == 'completed'


def test_a_cancelled_run_leaves_its_review(tmp_path):
    with Place(tmp_path, mode='required', concurrency=1, script=['slow', 'secure']) as place:
        connection = place.web.open()
        connection.request('POST', '/v1/runs', json.dumps({'language': 'bash', 'code': 'echo 1'}))
        until(lambda: place.server.requests)
        connection.close()
        assert place.run('echo 2', 'bash')['status'] == 'completed'


# ---- cost ----

def test_cost(tmp_path):
    """Nano-dollars in integers: 600 tokens at 0.25, 400 cached ones at 0.025, 50 of the answer at 1 dollar for a million."""
    with Place(tmp_path, mode='required', script=['secure', 'usage_missing', 'usage_absurd', 'usage_partial', 'usage_nulls'], **NANO) as place:
        usage = [place.run(f'print({n})')['review']['usage'] for n in range(5)]
        assert usage[0] == {'calls': 1, 'usage_missing': 0, 'prompt_tokens': 1000, 'completion_tokens': 50, 'total_tokens': 1050,
                            'cached_tokens': 400, 'reasoning_tokens': 20, 'cost_nanousd': 600 * 250 + 400 * 25 + 50 * 1000}
        for missing in usage[1:4]:
            assert missing['usage_missing'] == 1 and missing['total_tokens'] == 0 and missing['cost_nanousd'] == 0
        assert usage[4]['usage_missing'] == 0 and usage[4]['cost_nanousd'] == 7 * 250 + 3 * 1000


@pytest.mark.parametrize('prices', [{'input_cost_per_token': 2.5e-07, 'output_cost_per_token': 1e-06, 'cache_read_input_token_cost': 2.5e-08},
                                    {'input_cost_per_token': '0.00000025', 'output_cost_per_token': '0.000001',
                                     'cache_read_input_token_cost': '0.000000025'}])
def test_a_table_of_prices(tmp_path, prices):
    """litellm's table has floating numbers, OpenRouter decimal texts; both are exact."""
    table = tmp_path / 'prices.json'
    table.write_text(json.dumps({'other': {}, 'stub': {**prices, 'litellm_provider': 'x'}}))
    with Place(tmp_path, mode='required', **{'price.file': table}) as place:
        assert place.run('print(1)')['review']['usage']['cost_nanousd'] == 210_000


def test_a_hundred_reviews_add_up(tmp_path):
    with Place(tmp_path, mode='required', concurrency=50, **NANO) as place:
        records = together(place, [f'echo {n}' for n in range(100)])
        records = [record for record in records if record['review']['verdict'] == 'secure']
        usage = [record['review']['usage'] for record in records]
        assert len(usage) == 100 == len(place.server.requests)
        assert sum(one['total_tokens'] for one in usage) == 105_000
        assert sum(one['cost_nanousd'] for one in usage) == 100 * 210_000


# ---- keys and files ----

def test_the_key_is_nowhere(tmp_path):
    """The key goes to the server and to no log, record, error, command line, environment or answer of a command."""
    key, headers = secret(tmp_path / 'key', KEY + '\n'), secret(tmp_path / 'headers', f'# ours\nX-Extra: {KEY}-2\n')
    settings = {'api_key_file': key, 'headers_file': headers}
    with Place(tmp_path, '--set', 'engine.log_level=debug', mode='required', **settings, script=['secure', '401']) as place:
        records = [place.run('print(1)'), place.run('print(2)')]
        assert place.server.requests[0]['headers']['Authorization'] == f'Bearer {KEY}'
        assert place.server.requests[0]['headers']['X-Extra'] == f'{KEY}-2'
        assert records[1]['error']['code'] == 'review_unavailable'
        texts = [json.dumps(records), place.web.log.read_text(), json.dumps(place.web.ask('GET', '/v1/status')[2])]
        for pid in filter(str.isdigit, os.listdir('/proc')):
            for name in ('cmdline', 'environ'):
                try:
                    texts.append(Path(f'/proc/{pid}/{name}').read_bytes().decode('utf-8', 'replace'))
                except OSError:
                    pass
        texts += [caisson('config', 'show', *place.server.settings(**settings)).out]
        for file in (tmp_path / 'state', tmp_path):
            texts += [path.read_bytes().decode('latin-1') for path in file.rglob('*') if path.is_file() and path not in (key, headers)]
        assert not [text[:200] for text in texts if KEY in text]
        done = caisson('run', *place.server.settings(mode='required', **settings), '-l', 'bash', '-c', 'echo 3')
        assert KEY not in done.out + done.err


def test_a_key_that_changes(tmp_path):
    """In place and by rename; a key that others can read is refused, and the reviewer fails closed."""
    key = secret(tmp_path / 'key', 'one')
    with Place(tmp_path, '--set', 'engine.confine=false', mode='required', cache=0, api_key_file=key) as place:
        def sent():
            record = place.run('print(1)')
            return record['status'], place.server.requests[-1]['headers'].get('Authorization')
        assert sent() == ('completed', 'Bearer one')
        key.write_text('another')
        assert sent() == ('completed', 'Bearer another')
        secret(tmp_path / 'new', 'third').rename(key)
        assert sent() == ('completed', 'Bearer third')
        key.chmod(0o644)
        record = place.run('print(1)')
        assert record['status'] == 'blocked' and 'review.api_key_file' in record['error']['message'] and 'third' not in json.dumps(record)
        key.chmod(0o600)
        assert sent() == ('completed', 'Bearer third')


def test_a_confined_daemon_reads_a_key_that_is_changed_in_place(tmp_path):
    """The daemon's user may not open the file; the descriptor from before the confinement still reads it."""
    key = secret(tmp_path / 'key', 'one')
    with Place(tmp_path, mode='required', cache=0, api_key_file=key) as place:
        place.run('print(1)')
        key.write_text('another')
        place.run('print(1)')
        assert [request['headers']['Authorization'] for request in place.server.requests] == ['Bearer one', 'Bearer another']


@pytest.mark.parametrize('settings, words', [
    (['base_url=http://127.0.0.1:1/v1', 'model=m', 'url=http://127.0.0.1:1'], 'exclude each other'),
    (['base_url=ftp://127.0.0.1/v1', 'model=m'], 'review.base_url'),
    (['base_url=http://user:pass@127.0.0.1/v1', 'model=m'], 'review.api_key_file'),
    (['command=reviewer --now'], 'absolute path'),
    (['temperature=hot'], 'review.temperature'), (['temperature=2.1'], 'review.temperature'),
    (['price.input=-1'], 'review.price.input'), (['price.output=cheap'], 'review.price.output'),
])
def test_settings_that_are_wrong(tmp_path, settings, words):
    """A daemon and a command say at their start which setting is wrong, and how to write it."""
    options = [word for setting in settings for word in ('--set', f'review.{setting}')]
    done = caisson('run', *options, '-l', 'bash', '-c', 'echo 1')
    assert done.status == 78 and words in done.err and 'pass@' not in done.err, done.err
    web = None
    with pytest.raises(AssertionError):
        web = Web(tmp_path, *options)
    assert web is None and words in (tmp_path / 'log').read_text()


@pytest.mark.parametrize('name, text, mode, words', [
    ('api_key_file', 'x', 0o644, 'chmod o-r'), ('headers_file', 'X: y', 0o604, 'chmod o-r'), ('api_key_file', None, 0, 'No such file'),
    ('prompt_file', None, 0, 'No such file'), ('price.file', '[]', 0o600, 'no JSON object'), ('ca_file', None, 0, 'No such file')])
def test_files_that_are_refused(tmp_path, name, text, mode, words):
    file = tmp_path / 'file'
    if text is not None:
        secret(file, text, mode)
    with pytest.raises(AssertionError):
        Web(tmp_path, '--set', 'review.base_url=http://127.0.0.1:1/v1', '--set', 'review.model=m', '--set', f'review.{name}={file}')
    log = (tmp_path / 'log').read_text()
    assert f'review.{name}' in log and words in log


def test_a_model_has_to_be_named(tmp_path):
    options = ['--set', 'review.base_url=http://127.0.0.1:1/v1']
    with pytest.raises(AssertionError):
        Web(tmp_path, *options)
    assert 'review.model is not' in (tmp_path / 'log').read_text()
    done = caisson('run', *options, '--review', 'required', '-l', 'bash', '-c', 'echo 1')
    assert done.status == 126 and 'review.model is not' in done.err


def test_a_reload(tmp_path):
    """SIGHUP changes the mode; the address of the server needs a restart."""
    config = tmp_path / 'caisson.yaml'
    with ModelServer(['insecure']) as server:
        config.write_text(f'review:\n  base_url: {server.url}\n  model: stub\n')
        web = Web(tmp_path, '--config', config)
        assert web.run('echo 1')['status'] == 'completed' and not server.requests
        config.write_text('review:\n  base_url: http://127.0.0.1:1\n  model: stub\n  mode: required\n')
        web.daemon.process.send_signal(signal.SIGHUP)
        until(lambda: 'reload: review.mode is' in web.log.read_text())
        assert 'review.base_url stays' in web.log.read_text()
        assert web.run('echo 1')['status'] == 'blocked' and len(server.requests) == 1
        assert web.daemon.stop(15) == 0


# ---- a service and a program of one's own (S0-47) ----

def test_a_service_of_ones_own(tmp_path):
    """S0-47: {code, language, tools[], static_findings[], profile}."""
    with ModelServer(['hook_insecure', 'hook_secure']) as server:
        web = Web(tmp_path, '--set', f'review.url={server.url}/review', '--set', 'review.mode=required')
        record = web.run('import os\nos.system("ls")', 'python', policy='linx', advise=True, tools={'allow': ['one']})
        assert record['status'] == 'blocked' and record['review']['model'] == 'url'
        sent = server.requests[0]['body']
        assert sorted(sent) == ['code', 'language', 'profile', 'static_findings', 'tools'] and server.requests[0]['path'] == '/v1/review'
        assert sent['language'] == 'python' and sent['tools'] == ['one'] and sent['profile'] == 'standard'
        assert sent['static_findings'] and sent['static_findings'][0]['line'] == 2
        assert web.run('echo 1')['status'] == 'completed'
        assert web.daemon.stop(15) == 0


def test_a_service_is_asked_again_about_other_findings(tmp_path):
    """A verdict on a program without findings, or in another profile, is none on the program with them."""
    profiles = tmp_path / 'profiles'
    profiles.mkdir()
    (profiles / 'strict.yaml').write_text('extends: standard\n')
    with ModelServer(['hook_secure', 'hook_insecure']) as server:
        web = Web(tmp_path, '--set', f'review.url={server.url}/review', '--set', 'review.mode=required', '--set',
                  f'engine.profiles_dir={profiles}')
        code = 'import os\nos.system("true")'
        assert web.run(code, 'python')['status'] == 'completed'
        assert web.run(code, 'python')['review']['cached'] and len(server.requests) == 1
        assert web.run(code, 'python', policy='linx', advise=True)['status'] == 'blocked' and len(server.requests) == 2
        assert web.run(code, 'python', profile='strict')['status'] == 'blocked' and len(server.requests) == 3
        assert web.daemon.stop(15) == 0


PROGRAM = '''import json, os, sys, time
question = json.load(sys.stdin)
code = question['code']
if 'sleep' in code:
    time.sleep(60)
if 'noise' in code:
    print('x' * 2000000)
if 'fail' in code:
    sys.exit(3)
print(json.dumps({'is_secure': 'bad' not in code, 'reason': 'by the program', 'language': question['language'], 'uid': os.getuid()}))
'''


def test_a_program_of_ones_own(tmp_path):
    """The tool launcher starts the program without a shell, and never as the daemon."""
    program = tmp_path / 'reviewer.py'
    program.write_text(PROGRAM)
    tmp_path.chmod(0o755)
    program.chmod(0o755)
    command = f'/usr/bin/python3 {program}'
    for folder in list(tmp_path.parents)[:3]:
        if not folder.stat().st_mode & stat.S_IXOTH:
            command = f'/usr/bin/python3 -c {program_in_one_word()}'
    web = Web(tmp_path, '--set', f'review.command={command}', '--set', 'review.mode=required', '--set', 'review.timeout=3s', '--set',
              'review.attempts=1')
    record = web.run('echo 1')
    assert record['status'] == 'completed', (record, web.log.read_text())
    assert record['review']['model'] == 'command' and record['review']['extra']['language'] == 'bash'
    assert os.getuid() or record['review']['extra']['uid'] not in (0, os.getuid())
    assert web.run('echo bad')['error']['message'] == 'Code execution blocked due to security concerns: by the program'
    for code, words in (('echo fail', 'exit status 3'), ('echo noise', 'more than 1 MiB'), ('echo sleep', 'within review.')):
        record = web.run(code)
        assert record['status'] == 'blocked' and words in record['review']['error'], record
    assert web.daemon.stop(15) == 0
    done = caisson('run', '--json', '--set', f'review.command={command}', '--set', 'review.mode=required', '-l', 'bash', '-c', 'echo bad')
    assert json.loads(done.out)['error']['code'] == 'review', done.out + done.err


def program_in_one_word():
    """The program as an argument without a blank: folders of the test are closed to the program's user."""
    return f'exec(bytes.fromhex("{PROGRAM.encode().hex()}"))'
