"""What the tests of grading share: requests as Python has them, results checked against the schema."""

import json

import jsonschema

from cli import caisson, schema


def check(result):
    jsonschema.Draft202012Validator(schema('grade_result')).validate(result)
    assert result['total'] == len(result['cases']) == result['passed'] + result['failed'] + result['skipped']
    assert result['passed'] == sum(case['passed'] for case in result['cases'])
    assert all(case['passed'] == (case['status'] == 'passed') for case in result['cases'])
    assert result['skipped'] == sum(case['status'] == 'skipped' for case in result['cases'])
    assert result['all_passed'] == (result['passed'] > 0 and result['failed'] == 0 and result['error'] is None)
    assert not (result['all_passed'] and result['status'] != 'completed')
    return result


def grade(*requests, options=(), status=None):
    """The results of caisson grade --json, one for each request, in their order."""
    text = ''.join(json.dumps(request) + '\n' for request in requests).encode()
    done = caisson('grade', '--json', *options, '-', stdin=text)
    results = [check(json.loads(line)) for line in done.out.splitlines()]
    assert len(results) == len(requests), done.err
    assert all(result.get('id') == str(request['id']) for result, request in zip(results, requests) if 'id' in request)
    if status is not None:
        assert done.status == status, done.out
    return results


def one(**request):
    return grade(request)[0]


def calls(code, *cases, function='f', **more):
    """A result, by cases that call a function."""
    return one(code=code, function=function, cases=list(cases), **more)


def statuses(result):
    return [case['status'] for case in result['cases']]
