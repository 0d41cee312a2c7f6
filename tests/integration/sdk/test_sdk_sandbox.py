"""Both clients of sdk/python at a private daemon: runs, tools, files, sandboxes, contexts, cancellation."""

import asyncio
import contextvars
import gc
import io
import json
import signal
import subprocess
import sys
import tarfile
import threading
import time

import pytest

import caisson
from daemon import until
from twins import Async, Sync


@pytest.fixture(name='twin', params=[Sync, Async], ids=lambda kind: kind.name)
def twin_of_daemon(request, client):
    return request.param(str(client.address))


@pytest.fixture(name='quiet', scope='module')
def client_of_a_quiet_daemon():
    """A daemon at which no instance of an earlier grading goes on."""
    with caisson.Client.local(settings=['engine.running_max=4']) as own:
        yield own


def running(client):
    """How many runs go on."""
    return sum(one['state'] != 'over' for one in client.runs.list())


# ---- runs ----

def test_files_go_in_and_come_out(twin, client, tmp_path):
    (tmp_path / 'c').write_bytes(b'\xff3')
    code = 'open("out.bin", "wb").write(open("a", "rb").read() + open("b", "rb").read() + open("c", "rb").read())\nopen("other.txt", "w").write("x")'
    run = twin.call('run', code, files={'a': 'é1', 'b': b'\xfe2', 'c': tmp_path / 'c'}, download=['*.bin'])
    assert run.file('out.bin').content == 'é1'.encode() + b'\xfe2\xff3' and run.file('other.txt').content is None
    assert not run.file('out.bin').url and not list(client.files.list())


def test_a_figure_is_a_picture_of_a_notebook(twin):
    run = twin.call('run', 'import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()', image='data', download=['*.png'], timeout=120)
    assert run.ok, run
    assert run.results[0]._repr_png_().startswith(b'\x89PNG') and 'data:image/png;base64,' in run._repr_html_()


def test_standard_input_may_be_bytes(twin):
    assert twin.call('run', 'import sys\nprint(sys.stdin.buffer.read())', stdin=b'\xff\n').stdout == "b'\\xff\\n'\n"


def test_a_time_limit_is_in_seconds(twin):
    run = twin.call('run', 'while True: pass', timeout=0.3)
    assert (run.status, run.limits['wall_ms']) == ('timeout', 300)
    with pytest.raises(caisson.InvalidRequest) as caught:
        twin.call('run', 'x', timeout=-1)
    assert caught.value.field == 'timeout'


def test_output_comes_while_the_program_runs(twin):
    out, err, times = [], [], []
    run = twin.call('run', 'import sys, time\nprint("é", flush=True)\ntime.sleep(.5)\nprint(2, file=sys.stderr)', on_stdout=lambda text: (out.append(text), times.append(time.monotonic())),
                    on_stderr=lambda text: (err.append(text), times.append(time.monotonic())))
    assert (run.status, ''.join(out), ''.join(err)) == ('completed', 'é\n', '2\n') and times[-1] - times[0] > 0.3


def test_ten_megabytes_of_output_come_whole(twin):
    """A slow reader loses events, which the engine keeps in a ring; the result has all."""
    size = [0]
    run = twin.call('run', 'import sys\nfor _ in range(160): sys.stdout.write("é" * 32768)', limits={'output_bytes': 12 << 20},
                    on_stdout=lambda text: size.__setitem__(0, size[0] + len(text.encode())))
    assert run.status == 'completed' and len(run.stdout.encode()) == 10 << 20 >= size[0] > 1 << 20


def test_unicode_that_a_program_splits_stays_whole(twin):
    out = []
    code = 'import os, time\nfor byte in "é😀".encode():\n    os.write(1, bytes([byte]))\n    time.sleep(.02)'
    assert twin.call('run', code, on_stdout=out.append).stdout == 'é😀' and ''.join(out) == 'é😀'


def test_many_runs_are_one_request_or_few_at_a_time(twin):
    programs = [f'import time\ntime.sleep({.2 if number == 0 else 0})\nprint({number})' for number in range(8)]
    for options in ({}, {'concurrency': 3}):
        assert [run.stdout for run in twin.list('run_many', programs, **options)] == [f'{number}\n' for number in range(8)]
        assert sorted(run.index for run in twin.list('run_many', programs, ordered=False, **options)) == list(range(8))


def test_a_program_that_is_refused_is_a_result(twin):
    run = twin.call('run', 'x', 'cobol')
    assert run.status == 'unsupported_language' and 'cobol' in run.why()[0]
    with pytest.raises(caisson.InvalidRequest) as caught:
        twin.call('run', 'x', limits={'pids': 'many'})
    assert caught.value.field == '/limits/pids'


def test_an_idempotency_key_runs_a_program_once(twin):
    key = f'{twin.name}-{time.monotonic_ns()}'
    first, second = (twin.call('run', 'import random\nprint(random.random())', idempotency_key=key) for _ in range(2))
    assert first.stdout == second.stdout and first.id == second.id


def test_why_takes_a_run_and_an_id(twin):
    _, run = twin.stream('1 / 0')
    assert twin.call('why', run) == twin.call('why', run.id) and 'ZeroDivisionError: division by zero' in twin.call('why', run)


def test_policies_health_and_any_path(twin):
    assert twin.call('check', 'import socket', policy='linx')['policy'] == 'linx' and twin.call('health')['status'] == 'ready'
    assert twin.call('request', 'GET', '/v1/languages')['languages']


def test_me_names_what_the_caller_may_do(twin):
    me = twin.call('me')
    assert me['may']['run'] is True and me['key'] is None


def test_gradings_of_both_clients_are_the_same(twin):
    good = {'code': 'def f(x):\n    return x + 1\n', 'function': 'f', 'cases': [{'args': [1], 'expected': 2}]}
    assert twin.call('grade', good, id='a').id == 'a'
    assert [grade.score for grade in twin.call('grade_many', [good, {**good, 'code': 'def f(x): return 0'}] * 5)] == [1.0, 0.0] * 5


# ---- tools ----

place = contextvars.ContextVar('place', default='nowhere')


def where(name: str) -> str:
    """The place of the caller."""
    return f'{name} {place.get()} {threading.current_thread() is not threading.main_thread()}'


def test_a_program_calls_functions_of_this_process(twin):
    def fails() -> None:
        raise ValueError('mine')
    token = place.set('here')
    code = '''if True:
        print(tools.where(name='a'))
        try:
            tools.fails()
        except Exception as error:
            print(error)
        try:
            tools.where(name=5)
        except Exception as error:
            print('schema' if 'name' in str(error) else error)
        print(tools.get_tool_info('where')['description'])
    '''
    run = twin.call('run', code, tools=[where, fails])
    place.reset(token)
    assert run.stdout.splitlines()[0] == 'a here True' and 'ValueError: mine' in run.stdout and run.stdout.splitlines()[2:] == ['schema', 'The place of the caller.']


def test_slow_tools_run_beside_each_other(twin):
    barrier = threading.Barrier(4)

    def meet() -> str:
        barrier.wait(20)
        return 'met'
    code = 'from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool: print(*pool.map(lambda _: tools.meet(), range(4)))'
    assert twin.call('run', code, tools=[meet]).stdout == 'met met met met\n'


def test_a_tool_that_needs_a_yes_asks_for_it(twin):
    asked = []
    tool = caisson.Tool(where, ask=True)
    for answer, wanted in ((True, 'a nowhere True\n'), ('no', 'no')):
        run = twin.call('run', 'try: print(tools.where(name="a"))\nexcept Exception as error: print(error)', tools=[tool],
                        approve=lambda name, arguments, answer=answer: (asked.append((name, arguments)), answer)[1])
        assert wanted in run.stdout, run
    assert asked == [('where', {'name': 'a'})] * 2


# ---- sandboxes ----

def test_a_sandbox_runs_code_and_programs(twin):
    def use(do):
        assert do('run', 'x = 41').ok and do('run', 'x + 1').value == 42 and do('run', 'let y = 1; y', 'javascript').value == 1
        done = do('exec', 'cat; echo err >&2; exit 3', stdin='é\n')
        assert (done.stdout, done.stderr, done.exit_code, done.ok) == ('é\n', 'err\n', 3, False)
        with pytest.raises(caisson.CaissonError):
            done.raise_for_status()
        assert do('exec', ['python3', '-c', 'import sys; print(sys.argv[1:])', 'a b']).stdout == "['a b']\n"
        assert do('exec', 'pwd; echo $X', cwd='/tmp', env={'X': 'y'}).stdout == '/tmp\ny\n'
        assert do('exec', 'sleep 60', timeout=0.3).timed_out
        with pytest.raises(caisson.InvalidRequest):
            do('exec', ['/nonexistent'])
    twin.sandbox(use)


def test_a_large_standard_input_and_output_do_not_wait_for_each_other(twin):
    size = 3 << 20
    twin.sandbox(lambda do: [len(do('exec', 'cat', stdin=b'x' * size).stdout) == size or pytest.fail('bytes are missing')])


def test_output_of_a_program_that_prints_without_end_is_bounded(twin):
    def use(do):
        done = do('exec', 'yes', timeout=1, output_max=1000)
        assert done.timed_out and done.stdout == 'y\n' * 500 and done.lost_bytes > 1 << 20
        whole = do('exec', 'printf 12345', output_max=5)
        assert (whole.stdout, whole.lost_bytes) == ('12345', 0)
    twin.sandbox(use)


def test_a_program_that_does_not_read_its_input_ends(twin):
    assert twin.sandbox(lambda do: do('exec', 'exec 0<&-; echo done', stdin=b'x' * (1 << 20)).stdout) == 'done\n'


def test_files_of_a_sandbox(twin):
    def use(do):
        entry = do('files.write', 'd/é.txt', 'text', mode='0600')
        assert (entry.size_bytes, entry.mode, do('files.read', 'd/é.txt'), do('files.read_text', 'd/é.txt')) == (4, '0600', b'text', 'text')
        assert [one.path for one in do('files.list', depth=2)] == ['d', 'd/é.txt'] and do('files.stat', 'd').type == 'folder'
        assert do('files.change', 'd/é.txt', action='rename', to='d/b').name == 'b'
        do('files.remove', 'd')
        assert not do('files.exists', 'd')
        with pytest.raises(caisson.NotFound):
            do('files.read', 'd')
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode='w') as tar:
            info = tarfile.TarInfo('t/a')
            info.size = 3
            tar.addfile(info, io.BytesIO(b'abc'))
        do('files.write_tar', '.', archive.getvalue())
        assert do('files.read', 't/a') == b'abc'
        with tarfile.open(fileobj=io.BytesIO(do('files.read_tar', 't'))) as tar:
            assert any(name.endswith('a') for name in tar.getnames())
    twin.sandbox(use)


def test_a_sandbox_is_paused_resumed_and_listed(twin, client):
    def use(do):
        do('pause')
        assert do('refresh')['state'] == 'paused'
        do('resume')
        assert do('refresh')['state'] == 'running'
        do('set_ttl', 100)
        assert do('metrics')['memory_bytes'] > 0
        assert len(list(client.sandboxes.list())) == 1 and do('contexts') == []
    twin.sandbox(use, ttl=60, idle=30, labels={'a': 'b'})
    assert list(client.sandboxes.list()) == []


def test_a_context_keeps_variables_until_it_is_restarted(twin):
    if twin.name == 'sync':
        with twin.client.sandbox() as sandbox, sandbox.context() as context:
            assert context.run('x = 1').ok and context.run('x').value == 1 and twin.client.context(context.id).run('x').value == 1
            with context.stream('print(x)') as stream:
                assert stream.result().stdout == '1\n'
            context.restart()
            assert context.run('x').status == 'failed'
        return

    async def use():
        async with twin.client.sandbox() as sandbox, sandbox.context() as context:
            assert (await context.run('x = 1')).ok and (await context.run('x')).value == 1
            async with context.stream('print(x)') as stream:
                assert (await stream.result()).stdout == '1\n'
            await context.restart()
            assert (await context.run('x')).status == 'failed'
            await context.interrupt()
    asyncio.run(use(), debug=True)


def test_changes_of_a_folder_are_watched(client):
    with client.sandbox() as sandbox:
        watch = sandbox.files.watch()
        assert next(watch)['type'] == 'start'
        sandbox.files.write('a', 'x')
        seen = [next(watch) for _ in range(2)]
        assert {event['type'] for event in seen} <= {'created', 'changed', 'renamed', 'removed', 'mode'} and seen[0]['type'] == 'created'
        watch.close()

    async def use():
        async with caisson.AsyncClient(str(client.address)).sandbox() as box:
            async for event in box.files.watch():
                if event['type'] != 'start':
                    return event
                await box.files.write('a', 'x')
    assert asyncio.run(use())['type']


def test_a_sandbox_ends_with_an_exception_of_its_block(client):
    with pytest.raises(KeyError):
        with client.sandbox():
            raise KeyError
    assert list(client.sandboxes.list()) == []


# ---- ends ----

def test_leaving_a_stream_ends_the_program(twin, client):
    if twin.name == 'sync':
        with twin.client.stream('import time\nprint(1, flush=True)\ntime.sleep(600)') as stream:
            next(event for event in stream if event.type == 'stdout')
            assert running(client) == 1
    else:
        async def leave():
            async with twin.client.stream('import time\nprint(1, flush=True)\ntime.sleep(600)') as stream:
                async for event in stream:
                    if event.type == 'stdout':
                        break
                assert running(client) == 1
        asyncio.run(leave())
    until(lambda: running(client) == 0)


@pytest.mark.parametrize('fields', [{}, {'on_stdout': print}, {'tools': [where]}], ids=['plain', 'callback', 'tools'])
def test_a_call_of_asyncio_that_is_cancelled_ends_the_program(quiet, fields):
    async def cancel():
        one = caisson.AsyncClient(str(quiet.address))
        task = asyncio.ensure_future(one.run('import time\ntime.sleep(600)', **fields))
        await asyncio.sleep(1)
        assert busy(quiet) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    asyncio.run(cancel(), debug=True)
    until(lambda: busy(quiet) == 0)


def busy(client):
    """The gauge of running programs."""
    text = client._reply(caisson.calls.get('/metrics')).body.decode()
    return int(float(next(line.split()[-1] for line in text.splitlines() if line.startswith('caisson_runs_running'))))


@pytest.mark.parametrize('options', [{}, {'concurrency': 3}], ids=['one request', 'threads'])
def test_an_iterator_of_runs_that_is_closed_ends_them(quiet, options):
    """The first program ends at once, the others would go on."""
    programs = ['print(1)', *['import time\ntime.sleep(600)'] * 4]
    runs = caisson.Client(str(quiet.address)).run_many(programs, **options)
    assert next(runs).stdout == '1\n'
    until(lambda: busy(quiet) > 0)
    runs.close()
    until(lambda: busy(quiet) == 0)

    async def leave():
        runs = caisson.AsyncClient(str(quiet.address)).run_many(programs, **options)
        async for run in runs:
            break
        await runs.aclose()
        return run.stdout
    assert asyncio.run(leave(), debug=True) == '1\n'
    until(lambda: busy(quiet) == 0)


@pytest.mark.parametrize('fields', ['', ', on_stdout=print'], ids=['plain', 'callback'])
def test_an_interrupt_ends_the_program(quiet, fields):
    code = f'import caisson\ncaisson.Client({str(quiet.address)!r}).run("import time; time.sleep(600)"{fields})'
    with subprocess.Popen([sys.executable, '-c', code], stderr=subprocess.PIPE, text=True) as process:
        until(lambda: busy(quiet) == 1)
        process.send_signal(signal.SIGINT)
        assert 'KeyboardInterrupt' in process.communicate(timeout=60)[1]
    until(lambda: busy(quiet) == 0)


def test_many_runs_may_download_files_and_call_tools(twin):
    programs = [{'code': f'open("a", "w").write(str(tools.double(value={n})))', 'download': ['a'], 'tools': [double]} for n in range(3)]
    assert [run.file('a').content for run in twin.list('run_many', programs, concurrency=2)] == [b'0', b'2', b'4']


def double(value: int) -> int:
    return 2 * value


def test_an_executor_of_many_loops_shares_one_client(client):
    one = caisson.AsyncClient(str(client.address))
    found = []

    def work(number):
        found.append(asyncio.run(one.run(f'print({number})')).stdout)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ['0\n', '1\n', '2\n', '3\n']


def test_an_exec_that_is_cancelled_ends_the_program(client):
    async def cancel():
        async with caisson.AsyncClient(str(client.address)).sandbox() as sandbox:
            task = asyncio.ensure_future(sandbox.exec('sleep 600'))
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return (await sandbox.exec('pgrep -x sleep; true')).stdout
    assert asyncio.run(cancel(), debug=True) == ''


def test_a_private_daemon_of_asyncio_ends_with_its_client():
    async def use():
        async with caisson.AsyncClient.local(settings=['engine.running_max=2']) as one:
            assert (await one.run('print(1)')).stdout == '1\n'
            return one
    one = asyncio.run(use(), debug=True)
    gc.collect()
    assert not one.is_live


def test_kept_files_have_ids(twin):
    file = twin.call('files.upload', 'é.csv', 'a,b')
    assert twin.call('files.info', file.id).name == 'é.csv' and twin.call('files.read', file.id) == b'a,b'
    assert twin.call('run', 'print(open("é.csv").read())', files=[{'id': file.id}]).stdout == 'a,b\n'
    assert [one.id for one in twin.list('files.list')] == [file.id]
    twin.call('files.remove', file.id)
    twin.call('files.remove', file.id)
    with pytest.raises(caisson.NotFound):
        twin.call('files.read', file.id)


def test_layers_are_listed(twin):
    assert twin.call('layers.list') == [] and json.dumps(twin.call('layers.list')) == '[]'
    with pytest.raises(caisson.NotFound):
        twin.call('layers.get', 'lay_none')
