"""S1-60: examples/retry_loop.py, against a daemon and with models that are programs of the test."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from web import Web

EXAMPLE = Path(__file__).resolve().parents[3] / 'examples/retry_loop.py'
TASK = {'function': 'add', 'cases': [{'name': '1+2', 'args': [1, 2], 'expected': 3}]}
WRONG, RIGHT = 'def add(a, b): return a - b\n', 'Of course:\n\n```python\ndef add(a, b):\n    return a + b\n```\n'


@pytest.fixture(name='web', scope='module')
def opened(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('loop'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


@pytest.fixture(name='loop')
def loaded(web):
    spec = importlib.util.spec_from_file_location('retry_loop', EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.URL = f'http://127.0.0.1:{web.port}'
    return module


def test_the_loop_ends_when_all_cases_have_passed(loop):
    asked = []

    def generate(code, feedback):
        asked.append((code, feedback))
        return RIGHT

    result, code, why = loop.execute_code(TASK, generate, WRONG)
    assert result['all_passed'] and code == RIGHT and why == 'all cases passed'
    assert asked == [(WRONG, ["Test '1+2' failed: Expected 3, got -1"])]


@pytest.mark.parametrize('answers, tries, why', [
    ([WRONG, WRONG], 1, 'the model repeated its code'), ([WRONG, None], 1, 'the model failed'), ([WRONG, WRONG + '#1', WRONG + '#2', RIGHT], 3, 'all tries are used up'),
    (['def sub(a, b): pass', RIGHT], 2, 'all cases passed'), ([None], 0, 'the model failed'),
])
def test_the_loop_ends_for_other_reasons(loop, answers, tries, why):
    left, graded = list(answers), []
    real = loop.grade
    loop.grade = lambda task, code: graded.append(code) or real(task, code)
    result, _, ended = loop.execute_code(TASK, lambda code, feedback: left.pop(0))
    assert (len(graded), ended) == (tries, why) and bool(result) == (tries > 0)


def test_the_example_runs_as_its_text_says(web, tmp_path):
    model = f'''
import json, sys
question = json.load(sys.stdin)
assert question["task"]["function"] == "add"
print({RIGHT!r} if question["feedback"] else {WRONG!r})
'''
    (tmp_path / 'task.json').write_text(json.dumps(TASK))
    (tmp_path / 'model.py').write_text(model)
    env = {**os.environ, 'CAISSON_URL': f'http://127.0.0.1:{web.port}'}
    done = subprocess.run([sys.executable, EXAMPLE, tmp_path / 'task.json', sys.executable, tmp_path / 'model.py'], env=env, capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0 and 'return a + b' in done.stdout and done.stderr == 'all cases passed: score 1.00\n', done
