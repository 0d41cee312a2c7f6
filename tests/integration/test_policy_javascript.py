"""Programs in JavaScript and TypeScript whose verdict is known: tests/policy/javascript.jsonl."""

import collections
import json

import pytest

from cli import ROOT, caisson

ENDINGS = {'javascript': 'js', 'typescript': 'ts'}
ROWS = [json.loads(line) for line in (ROOT / 'tests/policy/javascript.jsonl').read_text().splitlines()]


@pytest.fixture(scope='module')
def answers(tmp_path_factory):
    """All of them, in one call of the program for each policy and language."""
    folder = tmp_path_factory.mktemp('programs')
    groups = collections.defaultdict(list)
    for row in ROWS:
        file = folder / f'{row["id"]}.{ENDINGS[row["language"]]}'
        file.write_bytes(row['code'].encode())
        groups[row['policy'], row['language']].append(str(file))
    found = {}
    for (policy, language), files in groups.items():
        output = caisson('check', '--json', '--policy', policy, '--language', language, *files).out
        for line in output.splitlines():
            answer = json.loads(line)
            found[answer['file'].rsplit('/', 1)[1].rsplit('.', 1)[0]] = answer
    return found


@pytest.mark.parametrize('row', ROWS, ids=[row['id'] for row in ROWS])
def test_a_program_gets_its_verdict_by_the_rules_that_are_meant(row, answers):
    answer = answers[row['id']]
    assert answer['verdict'] == row['verdict'], answer['reason']
    assert {finding['rule'] for finding in answer['findings']} == set(row['rules'])
