"""Programs print under the JavaScript runner what they print under plain Node, error messages included.

    /usr/bin/python3 -m pytest -q tests/integration/pool/test_plain_node.py
"""

import itertools
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from caisson_testing import TESTS, directives
from runners import ENVIRONMENT, NODE, NODE_MAJOR, runner_of
from test_cases import KNOWN

# Where a program begins, how the last expression follows, and which one it is.
BEGINNINGS = [
    'let a = [1, 2];', 'function f() { throw new TypeError("f") }', 'Promise.reject(new Error("early"));', '"use strict";',
    'const g = () => { console.log(new Error("seen").stack.split("\\n")[1]); return 1 };', 'before();', '',
]
GAPS = ['\n', ' ', '\n\n', '\n// comment\n', ' // console.log(1)\n', '\n/* two\nlines */\n', '\r\n', ' /* c */ ']
LASTS = [
    'nope()', 'nope.x;', 'a.map((x) => x.y.z)', 'f(); // end', 'g();', 'null.x', '(1, nope)', '1, nope.x;', '`\nconsole.log(1)`',
    "require('assert').ok(false)",
]
# Node 18 puts an error of a sequence at the beginning of the statement; with the runner it has the place of the failing part.
if NODE_MAJOR < 20:
    LASTS = [last for last in LASTS if not last.strip('(').startswith('1, ')]
GENERATED = [''.join(parts) for parts in itertools.product(BEGINNINGS, GAPS, LASTS)]
# What differs: the folder, the frames of Node's own files below the program's, and Node's words on a module without a type.
OTHER = re.compile(r'^ +at (?:.*\()?(?:async )?node:.*\n|^node:.*\n|^\(.*--trace-\w+.*\n|^\(node:\d+\).*\n', re.M)


def plain(text):
    return OTHER.sub('', text).replace(' {\n', '\n')


def differences(source, folder):
    folder.mkdir()
    (folder / 'main.js').write_bytes(source.encode())
    done = subprocess.run([NODE, 'main.js'], cwd=folder, env={**ENVIRONMENT, 'HOME': str(folder)}, capture_output=True, timeout=60,
                          stdin=subprocess.DEVNULL)
    ours = runner_of('cold', folder)('main.js', source)
    expected = (done.returncode, done.stdout.decode(), plain(done.stderr.decode()))
    seen = (ours.status, ours.stdout, plain(ours.stderr))
    return [] if seen == expected else [(source, expected, seen)]


def test_generated_programs_print_what_they_print_under_plain_node(tmp_path):
    assert len(GENERATED) >= (500 if NODE_MAJOR >= 20 else 400)
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(differences, GENERATED, [tmp_path / str(i) for i in range(len(GENERATED))])
        wrong = [one for many in found for one in many]
    assert wrong == [], f'{len(wrong)} differ'


@pytest.mark.parametrize('path', sorted((TESTS / 'cases' / 'javascript').iterdir()), ids=lambda path: path.name)
def test_programs_of_the_cases_print_what_they_print_under_plain_node(tmp_path, path):
    says = directives(path, KNOWN)
    name, words, stdin = 'main' + path.suffix, shlex.split(says.get('args', '')), says.get('stdin', '').replace('\\n', '\n')
    if 'options' in says:
        pytest.skip('its options are of caisson run')
    folders = [tmp_path / 'plain', tmp_path / 'ours']
    for folder in folders:
        folder.mkdir()
    (folders[0] / name).write_bytes(path.read_bytes())
    done = subprocess.run([NODE, name, *words], cwd=folders[0], env={**ENVIRONMENT, 'HOME': str(folders[0])}, capture_output=True, timeout=60,
                          input=stdin.encode())
    ours = runner_of('cold', folders[1])(name, path.read_text(), *words, stdin=stdin.encode())
    expected, seen = [(status, *(plain(text).replace(str(folder), '.') for text in texts)) for folder, status, *texts in (
        (folders[0], done.returncode, done.stdout.decode(), done.stderr.decode()), (folders[1], ours.status, ours.stdout, ours.stderr))]
    assert seen == expected
