"""caisson policy import: policies of CodeMie's executor (S3-44), and its thresholds (S3-43)."""

import json

import pytest

from cli import caisson

GIVEN = r'''
version: "1.0"
severity_threshold: LOW
patterns:
  - { pattern: 'os\.system\s*\(', description: "System command", severity: HIGH }
  - { pattern: 'subprocess\.(run|call|Popen|check_output)', description: "Subprocess", severity: LOW }
  - { pattern: 'os\.(remove|rmdir|unlink|mkdir|makedirs)', description: "File system", severity: HIGH }
  - { pattern: 'socket\.socket\s*\(', description: "Socket", severity: HIGH }
  - { pattern: 'requests\.(get|post|put|delete)', description: "HTTP", severity: LOW }
  - { pattern: '\beval\s*\(', description: "Evaluation", severity: HIGH }
  - { pattern: '\bexec\s*\(', description: "Execution", severity: HIGH }
  - { pattern: 'os\.environ\[', description: "Environment", severity: HIGH }
  - { pattern: '__builtins__', description: "Builtins", severity: 3 }
restricted_modules:
  - { name: shutil, description: "It's files", severity: MEDIUM }
  - { name: compile, description: "Compilation", severity: HIGH }
  - { name: math, description: "Numbers", severity: SAFE }
'''


@pytest.fixture(name='imported')
def converted(tmp_path):
    (tmp_path / 'given.yaml').write_text(GIVEN)
    done = caisson('policy', 'import', tmp_path / 'given.yaml', 'ours')
    assert done.status == 0, done.err
    (tmp_path / 'policies').mkdir()
    (tmp_path / 'policies/ours.yaml').write_text(done.out)
    return tmp_path / 'policies'


@pytest.mark.parametrize(('code', 'message'), [
    ('import os\nos.system("id")', 'System command'),
    ('import os as o\nrun = o.system', 'System command'),
    ('import subprocess as s\ns.check_output(["x"])', 'Subprocess'),
    ('from os import makedirs\nmakedirs("x")', 'File system'),
    ('import socket\nsocket.socket()', 'Socket'),
    ('import requests\nrequests.get("x")', 'HTTP'),
    ('e = eval\ne("1")', 'Evaluation'),
    ('exec("1")', 'Execution'),
    ('import os\nos.environ.get("A")', 'Environment'),
    ('import json, shutil', "It's files"),
    ('compile("1", "x", "eval")', 'Compilation'),
    ("a = \"'''\"\nimport os; os.system('id')\nb = \"'''\"", 'System command'),
    ("s = '#'; import shutil", "It's files"),
])
def test_what_the_policy_refuses(imported, code, message):
    """S3-41, S3-42, S3-44: also what got past the regular expressions."""
    done = caisson('check', '--set', f'engine.policies_dir={imported}', '--policy', 'ours', '-l', 'python', '--json', '-c', code)
    answer = json.loads(done.out)
    assert answer['verdict'] == 'deny' and message in [one['message'] for one in answer['findings']], answer


@pytest.mark.parametrize('code', ['df.eval("a+b")', 'x = "import shutil "', '# os.system("x")', 'import math', 'import os.path'])
def test_what_the_policy_allows(imported, code):
    done = caisson('check', '--set', f'engine.policies_dir={imported}', '--policy', 'ours', '-l', 'python', '-c', code)
    assert done.status in (0, 1), done.out


@pytest.mark.parametrize(('text', 'words'), [
    ('version: "2.0"\npatterns: []\n', '1: version has to be "1.0"'),
    ('patterns: []\n', 'version is missing'),
    ('version: "1.0"\n', 'neither a pattern nor a module'),
    ('version: "1.0"\npatterns:\n  - { pattern: "os[.(system", severity: HIGH }\n', ':3: "os[.(system" is no regular expression'),
    ("version: \"1.0\"\npatterns:\n  - { pattern: '^import os$', severity: HIGH }\n", ':3: the regular expression "^import os$" has no equal in names'),
    ("version: \"1.0\"\npatterns:\n  - { pattern: 'os.*', severity: HIGH }\n", 'has no equal in names'),
    ("version: \"1.0\"\npatterns:\n  - { pattern: 'os\\.system', severity: BAD }\n", ':3: severity is SAFE, LOW, MEDIUM or HIGH'),
    ("version: \"1.0\"\npatterns:\n  - { severity: LOW }\n", ':3: an entry needs pattern and severity'),
    ('version: "1.0"\nrestricted_modules:\n  - { name: "a b", severity: LOW }\n', 'has to be the name of a module'),
    ('version: "1.0"\nrules: []\n', 'there is no "rules"'),
])
def test_a_file_that_cannot_be_converted_is_refused_with_its_line(tmp_path, text, words):
    """S3-44: an expression that was skipped would be a weaker policy."""
    (tmp_path / 'given.yaml').write_text(text)
    done = caisson('policy', 'import', tmp_path / 'given.yaml')
    assert (done.status, done.out) == (64, '') and words in done.err, done.err


def test_a_missing_file_is_an_error(tmp_path):
    done = caisson('policy', 'import', tmp_path / 'none.yaml')
    assert done.status == 64 and 'none.yaml' in done.err


@pytest.mark.parametrize(('threshold', 'refused'), [('SAFE', []), ('LOW', ['os', 'glob', 'sys']), ('MEDIUM', ['glob', 'sys']), ('HIGH', ['sys'])])
def test_thresholds(threshold, refused):
    """S3-43: SAFE refuses nothing."""
    for module in ('os', 'glob', 'sys'):
        done = caisson('check', '--policy', 'codemie', '--block-at', threshold, '-l', 'python', '-c', f'import {module}')
        assert done.status == (2 if module in refused else 1)
