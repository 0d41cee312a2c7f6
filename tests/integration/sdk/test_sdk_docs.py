"""The programs of docs/use/sdk.md and of the README files run as they are written."""

import os
import re
import subprocess
import sys

import pytest

from cli import ROOT

PAGE = 'docs/use/sdk.md'
OUTPUT = {
    'Ten lines of Python': "completed ['image_0000.png']\n",
    'Methods': '42\nhello\n6\n\n0 0\n1 1\n2 4\n',
    'Output as it comes': '0\n1\n2\ncompleted\n',
    'Functions of the caller as tools': '2.0\n\n',
    'Ten lines of JavaScript': 'hello\n 42\nimage_0000.png true\n',
}


def blocks(path, language):
    """(heading, program) of each block of a page."""
    found, heading = [], ''
    for title, kind, text in re.findall(r'^## ([^\n]+)$|^```(\w+)\n(.*?)^```$', (ROOT / path).read_text(), re.MULTILINE | re.DOTALL):
        heading = title or heading
        if kind == language:
            found.append((heading, text))
    return found


@pytest.mark.parametrize('heading, text', blocks(PAGE, 'python'), ids=lambda value: value if len(value) < 60 else '')
def test_a_program_of_python_runs(client, heading, text):
    assert client.is_live
    done = subprocess.run([sys.executable, '-c', text], capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stdout) == (0, OUTPUT[heading]), done.stderr


@pytest.mark.parametrize('heading, text', blocks(PAGE, 'js'), ids=lambda value: value if len(value) < 60 else '')
def test_a_program_of_javascript_runs(typescript, client, heading, text):
    out = typescript.node(text.replace("'caisson-sandbox'", "'./index.js'"), env={'CAISSON_URL': str(client.address)})
    assert out == OUTPUT[heading]


def test_each_heading_with_a_program_is_tested():
    assert {heading for language in ('python', 'js') for heading, _ in blocks(PAGE, language)} == set(OUTPUT)


def test_the_program_of_the_readme_runs(client):
    (_, text), = blocks('sdk/python/README.md', 'python')
    done = subprocess.run([sys.executable, '-c', text], capture_output=True, text=True, timeout=200, check=False, env=dict(os.environ))
    assert client.is_live and (done.returncode, done.stdout) == (0, '42\n\nTrue 1.0 False\n'), done.stdout + done.stderr


@pytest.mark.parametrize('path', ['docs/use/sdk.md', 'docs/integrations.md'])
def test_recipes_are_short(path):
    for language in ('python', 'js', 'sh', 'yaml'):
        assert all(len(text.splitlines()) <= 15 for _, text in blocks(path, language))
