"""Records of public data sets as requests: small ones in the form of each, written here; completions, preludes, helpers, references."""

import base64
import json
import os
import pickle
import zlib

import pytest

from cli import caisson
from grading import calls, grade, one, statuses

ADD = 'def add(a, b):\n    return a + b\n'
METHOD = 'class Solution:\n    def add(self, a, b):\n        return a + b\n'
DOUBLE = 'print(2 * int(input()))\n'


def packed(value, protocol=4):
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


def streams(*pairs):
    return {'inputs': [a for a, _ in pairs], 'outputs': [b for _, b in pairs]}


TWO = streams(('2\n', '4\n'), ('5\n', '10\n'))
SUMS = {'inputs': ['1\n2', '[1]\n[2]'], 'outputs': ['3', '[1, 2]'], 'fn_name': 'add'}
LISTS = {'inputs': [[1, 2], [[1], [2]]], 'outputs': [[3], [[1, 2]]], 'fn_name': 'add'}
TESTS = [{'input': '2\n', 'output': '4\n', 'testtype': 'stdin'}, {'input': '5\n', 'output': '10\n', 'testtype': 'stdin'}]
ASSERTS = ['assert add(1, 2) == 3', 'assert add(2, 2) == 4']
PLUS = {'task_id': 'HumanEval/900', 'prompt': 'def add(a, b):\n    """The sum."""\n', 'entry_point': 'add', 'canonical_solution': '    return a + b\n',
        'base_input': [[1, 2]], 'plus_input': [[3, 4], [[1], [2]]], 'atol': 0, 'contract': '\n    assert True\n'}
MBPP = {**PLUS, 'task_id': 'Mbpp/901', 'prompt': '"""\nThe sum.\nassert add(1, 2) == 3\n"""\n', 'canonical_solution': ADD, 'assertion': 'assert add(1, 2) == 3'}
CHECKER = 'import sys\n_, right, answer = [open(path).read().split() for path in sys.argv[1:4]]\nprint(int(right == answer))\n'

# Format, the record's own members, a program that passes all of it, how many tests there are.
RECORDS = [
    ('lcb', {'input_output': json.dumps(TWO), 'question_id': 'q1', 'difficulty': 'easy'}, DOUBLE, 2),
    ('lcb', {'input_output': SUMS}, METHOD, 2),
    ('lcb', {'input_output': SUMS}, ADD, 2),
    ('lcb', {'public_test_cases': json.dumps(TESTS[:1]), 'private_test_cases': packed(json.dumps(TESTS[1:])), 'metadata': '{}', 'question_title': 'x'}, DOUBLE, 2),
    ('lcb', {'public_test_cases': json.dumps([{'input': '1\n2', 'output': '3', 'testtype': 'functional'}]), 'private_test_cases': '[]',
             'metadata': json.dumps({'func_name': 'add'}), 'starter_code': 'class Solution: pass'}, METHOD, 1),
    ('apps', {'input_output': json.dumps(LISTS), 'starter_code': '', 'question': 'x', 'solutions': '[]', 'problem_id': 7}, ADD, 2),
    ('apps', {'input_output': {'inputs': [['2'], '5'], 'outputs': [['4'], '10']}}, DOUBLE, 2),
    ('taco', {'input_output': json.dumps({'inputs': [[{'1': 2}]], 'outputs': [[{'2': 2}]], 'fn_name': 'shift'}), 'time_limit': '2 seconds', 'tags': '[]'},
     'def shift(table):\n    return {key + 1: value for key, value in table.items()}\n', 1),
    ('codecontests', {'name': 'p', 'public_tests': {'input': ['2\n'], 'output': ['4\n']}, 'private_tests': {'input': [], 'output': []},
                      'generated_tests': {'input': ['5\n'], 'output': ['10 \n']}, 'time_limit': {'seconds': 2, 'nanos': 500000000}, 'source': 2}, DOUBLE, 2),
    ('codecontests', {'public_tests': {'input': ['2\n'], 'output': ['4\n']}, 'time_limit': 3, 'memory_limit_bytes': 268435456, 'input_file': ''}, DOUBLE, 1),
    ('primeintellect', {'verification_info': json.dumps({'language': 'python', 'test_cases': [{'type': 'stdin_stdout', 'fn_name': None, 'input': '2\n', 'output': '4\n'}]}),
                        'problem_id': 'p_1', 'task_type': 'verifiable_code'}, DOUBLE, 1),
    ('primeintellect', {'verification_info': {'test_cases': [{'type': 'function_call', 'fn_name': 'add', 'input': [1, 2], 'output': [3]}]}}, ADD, 1),
    ('verl', {'ground_truth': json.dumps(TWO), 'data_source': 'x', 'extra_info': {'index': 1}}, DOUBLE, 2),
    ('verl', {'reward_model': {'style': 'rule', 'ground_truth': json.dumps(SUMS)}, 'prompt': [{'role': 'user', 'content': 'x'}]}, METHOD, 2),
    ('verl', {'ground_truth': {'assert_case': ASSERTS, 'inputs': [], 'outputs': []}}, ADD, 2),
    ('scalebox', {'provided_data': {'test_cases': {'type': 'stdin_stdout', 'input': ['2\n', '5\n'], 'output': ['4', '10'], 'fn_name': None, 'json_input': False}}}, DOUBLE, 2),
    ('scalebox', {'provided_data': {'test_cases': {'type': 'function_call', 'input': ['1\n2'], 'output': ['3'], 'fn_name': 'add', 'json_input': True}}}, METHOD, 1),
    ('scalebox', {'provided_data': {'test_cases': {'type': 'assert', 'tests': '\n'.join(ASSERTS)}}}, ADD, 2),
    ('scalebox', {'provided_data': {'test_cases': {'type': 'assert', 'test': 'def check(f):\n    assert f(1, 2) == 3\n', 'entry_point': 'add'}}}, ADD, 1),
    ('humanevalplus', PLUS, ADD, 3),
    ('humanevalplus', {'task_id': 'HumanEval/901', 'prompt': '', 'entry_point': 'add', 'test': 'def check(f):\n    assert f(1, 2) == 3\n'}, ADD, 1),
    ('mbppplus', MBPP, ADD, 3),
    ('mbppplus', {**MBPP, 'task_id': 'Mbpp/252', 'entry_point': 'polar', 'base_input': [['(3+4j)']], 'plus_input': [['1']],
                  'canonical_solution': 'import cmath\ndef polar(number):\n    return cmath.polar(number)\n'},
     'def polar(number):\n    import cmath\n    return abs(number), cmath.phase(number)\n', 2),
    ('mbppplus', {**MBPP, 'task_id': 'Mbpp/106', 'base_input': [[[1], [2, 3]]], 'plus_input': [], 'canonical_solution': 'def add(items, more):\n    return more + tuple(items)\n'},
     'def add(items, more):\n    assert type(more) is tuple\n    return more + tuple(items)\n', 1),
    ('kodcode', {'test': 'from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3\n\ndef test_more():\n    assert add(0, 0) == 0\n',
                 'question': 'x', 'question_id': 'k1', 'solution': ADD, 'test_info': [{'function_name': 'add'}]}, ADD, 2),
    ('codeforces', {'id': '1/A', 'aliases': None, 'official_tests': [{'input': '2\n', 'output': '4\n'}], 'generated_tests': 0, 'time_limit': 2.0, 'memory_limit': 256.0,
                    'input_mode': 'stdio', 'rating': 800, 'tags': ['math'], 'generated_checker': None}, DOUBLE, 1),
    ('leetcode', {'test': 'def check(candidate):\n    assert candidate(a = 1, b = 2) == 3\n', 'entry_point': 'Solution().add', 'difficulty': 'Easy'}, METHOD, 1),
    ('leetcode', {'tests': {'functional': 'def check(candidate):\n    assert candidate(a = 1, b = 2) == 3\n\ncheck(Solution().add)\n'}}, METHOD, 1),
    ('skyrl', {'reward_spec': {'method': 'rule', 'ground_truth': json.dumps(TESTS)}, 'env_class': 'lcb'}, DOUBLE, 2),
    ('skyrl', {'reward_spec': {'ground_truth': json.dumps(SUMS)}}, METHOD, 2),
]
IDS = ['%s-%d' % (record[0], i) for i, record in enumerate(RECORDS)]


def wrong(code):
    return code.replace('2 *', '3 *').replace('a + b', 'a + b + b').replace('key + 1', 'key').replace('abs(number)', '1').replace('more +', 'more + more +')


@pytest.mark.parametrize('name, record, code, total', RECORDS, ids=IDS)
def test_a_record_is_graded_as_it_is(name, record, code, total):
    good, bad = grade({'format': name, **record, 'code': code}, {'format': name, **record, 'code': wrong(code)})
    assert good['all_passed'] and good['total'] == total, good
    assert bad['status'] == 'completed' and bad['failed'] and not bad['mask'], bad
    assert wrong(code) != code


@pytest.mark.parametrize('name, record, code, total', RECORDS, ids=IDS)
def test_a_completion_has_the_program_in_a_fence(name, record, code, total):
    fenced = f'Think.\n```python\n{code}```\nDone.\n'
    good, empty = grade({'format': name, **record, 'completion': fenced}, {'format': name, **record, 'completion': 'I do not know.'})
    assert good['all_passed'] and good['total'] == total, good
    if name == 'humanevalplus':         # goes on behind the prompt
        assert empty['status'] in ('syntax_error', 'completed') and not empty['all_passed']
        return
    assert empty['status'] == 'failed' and empty['error']['code'] == 'no_code_block' and empty['score'] == 0 and not empty['mask']
    assert set(statuses(empty)) <= {'not_run'} and empty['runs'] == 0


def test_ids_are_those_of_the_caller_then_those_of_the_record():
    record = {'format': 'lcb', 'input_output': TWO, 'code': DOUBLE, 'question_id': 12}
    assert [result['id'] for result in grade(record, {**record, 'id': 'mine'}, {**PLUS, 'format': 'humanevalplus', 'code': ADD, 'id': 'mine'})] == ['12', 'mine', 'mine']


def test_a_special_judge_and_a_generated_checker_decide():
    data = {'test_cases': {'type': 'stdin_stdout', 'input': ['2\n'], 'output': ['4']}}
    judge = 'import sys\nright, answer = open("stdout.txt").read().split(), open("answer.txt").read().split()\nsys.exit(right != answer)\n'
    code = {'format': 'scalebox', 'provided_data': data, 'extra': {'special_judge_program': judge, 'special_judge_language': 'python'}}
    contest = {'format': 'codeforces', 'official_tests': [{'input': '2', 'output': '4'}], 'generated_checker': CHECKER}
    results = grade({**code, 'code': DOUBLE}, {**code, 'code': wrong(DOUBLE)}, {**contest, 'code': DOUBLE}, {**contest, 'code': wrong(DOUBLE)})
    assert [result['all_passed'] for result in results] == [True, False, True, False], results
    assert not any(result['mask'] for result in results)


# ---- damaged records ----

class Evil:
    def __reduce__(self):
        return os.system, ('touch /tmp/caisson-pickle-was-run',)


BOMB = base64.b64encode(zlib.compress(b'[' + b' ' * (70 << 20) + b']')).decode()


@pytest.mark.parametrize('name, record, field, words', [
    ('lcb', {'input_output': '{"inputs": [1'}, '/input_output', 'no JSON'),
    ('lcb', {'input_output': 7}, '/input_output', 'object or an array'),
    ('lcb', {'input_output': {'inputs': ['1', '2'], 'outputs': ['1']}}, '/input_output/outputs', '2 inputs and 1 outputs'),
    ('lcb', {'input_output': {'inputs': 'x', 'outputs': []}}, '/input_output/inputs', 'array'),
    ('lcb', {'input_output': {**SUMS, 'inputs': ['1\n2', '1\nx']}}, '/input_output/inputs/1', 'one JSON value a line'),
    ('lcb', {'input_output': {**SUMS, 'outputs': ['3', 'x']}}, '/input_output/outputs/1', 'no JSON'),
    ('lcb', {'input_output': {**SUMS, 'fn_name': 3}}, '/input_output/fn_name', 'text or null'),
    ('lcb', {'input_output': streams()}, '', 'no tests'),
    ('lcb', {}, '/input_output', 'no tests'),
    ('lcb', {'public_test_cases': json.dumps([{'input': '1', 'output': '1', 'testtype': 'functional'}])}, '/public_test_cases/0', 'metadata.func_name'),
    ('lcb', {'private_test_cases': 'not base64!'}, '/private_test_cases', 'neither JSON nor base64'),
    ('lcb', {'private_test_cases': base64.b64encode(b'no zlib').decode()}, '/private_test_cases', 'no zlib'),
    ('lcb', {'private_test_cases': base64.b64encode(zlib.compress(b'[' * 1000)[:-8]).decode()}, '/private_test_cases', 'cut'),
    ('lcb', {'private_test_cases': BOMB}, '/private_test_cases', 'grading.record_bytes'),
    ('lcb', {'private_test_cases': packed(Evil())}, '/private_test_cases', 'pickle of one text: it has more than one object'),
    ('lcb', {'private_test_cases': packed(['a'])}, '/private_test_cases', 'opcode'),
    ('lcb', {'private_test_cases': packed('[1')}, '/private_test_cases', 'no JSON'),
    ('lcb', {'input_output': {'inputs': [json.dumps([1] * 1500000)] * 3, 'outputs': ['1'] * 3, 'fn_name': 'f'}}, '/input_output/inputs/2', 'too many values'),
    ('apps', {}, '/input_output', 'missing'),
    ('taco', {'input_output': 'x'}, '/input_output', 'neither JSON'),
    ('codecontests', {'time_limit': 1}, '/public_tests', 'no tests'),
    ('codecontests', {'public_tests': {'input': ['1'], 'output': []}}, '/public_tests/output', '1 inputs and 0 outputs'),
    ('codecontests', {'public_tests': {'input': ['1'], 'output': ['1']}, 'time_limit': 'x'}, '/time_limit', 'seconds'),
    ('codecontests', {'public_tests': {'input': ['1'], 'output': ['1']}, 'input_file': 'input.txt'}, '/input_file', 'by name'),
    ('primeintellect', {}, '/verification_info', 'missing'),
    ('primeintellect', {'verification_info': {'test_cases': [{'input': '1'}]}}, '/verification_info/test_cases/0', 'input and output'),
    ('verl', {}, '/ground_truth', 'missing'),
    ('verl', {'ground_truth': {'assert_case': 'x'}}, '/ground_truth/assert_case', 'array of texts'),
    ('scalebox', {}, '/provided_data/test_cases', 'missing'),
    ('scalebox', {'provided_data': {'test_cases': {'type': 'nose'}}}, '/provided_data/test_cases/type', 'stdin_stdout'),
    ('scalebox', {'provided_data': {'test_cases': {'type': 'assert'}}}, '/provided_data/test_cases/tests', 'neither tests nor test'),
    ('humanevalplus', {'task_id': 'HumanEval/1', 'prompt': ''}, '/base_input', 'no tests'),
    ('humanevalplus', {**PLUS, 'base_input': [3]}, '/base_input/0', 'list of arguments'),
    ('humanevalplus', {**PLUS, 'entry_point': ''}, '/entry_point', 'names the function'),
    ('humanevalplus', {**PLUS, 'canonical_solution': None}, '/canonical_solution', 'missing'),
    ('humanevalplus', {**PLUS, 'atol': 'x'}, '/atol', 'not negative'),
    ('mbppplus', {**MBPP, 'task_id': 'Mbpp/252', 'base_input': [['__import__("os")']]}, '/base_input/0', 'shape'),
    ('kodcode', {}, '/test', 'missing'),
    ('kodcode', {'test': 3}, '/test', 'text'),
    ('codeforces', {'official_tests': [], 'input_mode': 'file'}, '/input_mode', 'only problems with "stdio"'),
    ('codeforces', {'official_tests': [{'input': '1', 'output': '1'}], 'memory_limit': -1}, '/memory_limit', 'not negative'),
    ('codeforces', {'official_tests': [{'input': '1', 'output': '1'}], 'generated_checker': 5}, '/generated_checker', 'text of a program'),
    ('leetcode', {}, '/functional', 'missing'),
    ('skyrl', {'reward_spec': {}}, '/reward_spec/ground_truth', 'missing'),
])
def test_a_damaged_record_is_told_with_its_place(name, record, field, words):
    result = grade({'id': 'x', 'format': name, **record, 'code': '1'}, status=64)[0]
    assert result['status'] == 'bad_request' and result['error']['code'] == 'record_invalid', result
    assert result['error'].get('field', '') == field and words in result['error']['message'] and ', line 1: ' in result['error']['message'], result
    assert not result['mask'] and result['score'] == 0
    assert not os.path.exists('/tmp/caisson-pickle-was-run')


@pytest.mark.parametrize('protocol', range(6))
def test_pickles_of_a_text_are_read_without_being_executed(protocol):
    record = {'format': 'lcb', 'code': DOUBLE, 'private_test_cases': packed(json.dumps(TESTS * 40), protocol)}
    result = one(**record, max_cases=2)
    if protocol == 0:           # its text is in another form, which is not read
        assert result['error']['code'] == 'record_invalid'
    else:
        assert result['all_passed'] and result['total'] == 2


def test_the_size_of_decompressed_tests_is_a_setting():
    record = {'format': 'lcb', 'code': DOUBLE, 'private_test_cases': packed(json.dumps([{'input': '2' + ' ' * 2000, 'output': '4', 'testtype': 'stdin'}]))}
    refused = grade(record, options=('--set', 'grading.record_bytes=1KiB'), status=64)[0]
    assert 'grading.record_bytes' in refused['error']['message']
    assert one(**record)['all_passed']
    assert 'grading.record_bytes' in caisson('grade', '--set', 'grading.record_bytes=2GiB', '-', stdin=b'{}').err


def test_formats_are_known_by_name():
    result = grade({'format': 'nose', 'code': '1'}, status=64)[0]
    assert result['error']['code'] == 'format_unknown' and result['error']['field'] == '/format' and 'codecontests' in result['error']['message']
    done = caisson('grade', '--format', 'nose', '-', stdin=b'{}')
    assert done.status == 64 and 'codecontests' in done.err
    assert grade({'input_output': TWO, 'code': DOUBLE}, options=('--format', 'lcb'))[0]['all_passed']


def test_members_of_no_data_set_are_errors():
    result = one(format='lcb', input_output=TWO, code=DOUBLE, colour='red')
    assert result['error']['code'] == 'bad_request' and result['error']['field'] == '/colour'
    assert one(format='codecontests', public_tests={'input': ['1'], 'output': ['2']}, question_title='x', code=DOUBLE)['error']['field'] == '/question_title'


# ---- names of older systems ----

def test_checker_with_a_text_is_compare_and_check_is_checker():
    case = {'stdin': '', 'expected_stdout': '1 2'}
    assert one(code='print(1); print(2)', cases=[case], checker='tokens')['all_passed']
    checker = {'code': 'import sys; sys.exit(open("output").read() != "1\\n")'}
    assert one(code='print(1)', cases=[case], checker='program', check=checker)['all_passed']
    assert one(code='print(1)', cases=[case], checker=checker)['all_passed']
    assert 'compare and checker' in one(code='1', cases=[case], checker='tokens', compare='tokens')['error']['message']
    assert 'checker and check' in one(code='1', cases=[case], checker=checker, check=checker)['error']['message']
    assert one(code='1', cases=[case], checker='nose')['error']['field'] == '/compare'
    assert grade({'code': 'print(1); print(2)', 'cases': [case]}, options=('--checker', 'tokens'))[0]['all_passed']


# ---- completions ----

def test_the_choice_of_the_block_is_named():
    text = 'a\n```python\nprint(1)\n```\nb\n```text\nnonsense(\n```\n'
    case = {'cases': [{'expected_stdout': '1'}], 'completion': text}
    results = grade({**case, 'extract': 'verl'}, {**case, 'extract': 'tagged_fence'}, case, {**case, 'completion': 'print(1)', 'extract': 'none'})
    assert [result['all_passed'] for result in results] == [True, True, False, True]
    assert results[0]['warnings'][0]['text'] == 'the submission begins in line 3 of completion, because extract is verl'


def test_a_completion_stands_in_place_of_code():
    result = one(code='1', completion='2', cases=[{'expected_stdout': ''}])
    assert result['error']['field'] == '/completion' and 'give one of them' in result['error']['message']
    assert one(code='print(1)', extract='last_fence', cases=[{'expected_stdout': '1'}])['all_passed']    # without a block the text is the program


def test_the_solution_of_a_record_gives_way_to_an_answer():
    answer = {'code': 'def add(a, b):\n    return 0\n', 'completion': f'```python\n{ADD}```'}
    results = grade({**answer, 'task_id': 2, 'text': 'The sum.', 'test_list': ASSERTS, 'challenge_test_list': []}, {**MBPP, **answer, 'format': 'mbppplus'},
                    {**answer, 'format': 'mbppplus', 'task_id': 2, 'prompt': 'The sum.', 'test_list': ASSERTS, 'test_imports': [], 'test': '\n'.join(ASSERTS)})
    assert all(result['all_passed'] for result in results), results


def test_what_follows_a_prompt_goes_on_or_begins_anew():
    problem = {'prompt': 'import math\ndef root(x):\n    """Of x."""\n', 'entry_point': 'root', 'test': 'def check(f):\n    assert f(9) == 3\n'}
    whole, body = 'def root(x):\n    return math.isqrt(x)\n', '    return math.isqrt(x)\n'
    answers = body, f'Here:\n```python\n{body}```\n', f'Here:\n```python\n{whole}```\n', f'```\n{whole}```', '    return 0\n'
    assert [result['all_passed'] for result in grade(*({**problem, 'completion': answer} for answer in answers))] == [True] * 4 + [False]


# ---- preludes ----

def test_a_prelude_is_there_for_calls_tests_and_standard_input():
    code = 'def f(x):\n    return [Counter(x)[1], pow(2, 3, 5), isqrt(9), deque(x)[0], List[int].__args__[0](3)]\n'
    assert calls(code, {'args': [[1, 1]], 'expected': [2, 3, 3, 1, 3]}, prelude='lcb')['all_passed']
    assert one(code=code, tests='assert f([1, 1]) == [2, 3, 3, 1, 3]\nassert Counter([1]) == {1: 1}', prelude='verl')['all_passed']
    assert one(code='print(Counter(stdin.read().split()).most_common(1))', prelude='lcb', cases=[{'stdin': '1 1 2', 'expected_stdout': "[('1', 2)]"}])['all_passed']
    assert calls(code, {'args': [[1]], 'expected': []})['cases'][0]['error_type'] == 'NameError'
    limit = calls('def f():\n    import sys\n    return sys.getrecursionlimit()\n', {'args': [], 'expected': 50000}, prelude='lcb')
    assert limit['all_passed'], limit
    shared = one(code='def f(x):\n    return Counter(x)\n', tests='assert f([1]) == {1: 1}', prelude='lcb', shared_process=True)
    assert shared['all_passed'], shared


def test_a_prelude_moves_no_line_and_hides_no_name():
    result = calls('def f():\n    return 1 / 0\n', {'args': [], 'expected': 1}, prelude='lcb')
    assert result['cases'][0]['line'] == 2
    missing = calls('def g(): return 1', {'args': [], 'expected': 1}, function='search', prelude='lcb')
    assert missing['error']['code'] == 'function_not_found' and missing['error']['message'].endswith('there are: g')
    own = calls('class Solution:\n    def search(self, x):\n        return x\n', {'args': [3], 'expected': 3}, function='search', prelude='lcb')
    assert own['all_passed']
    assert calls('def count(x):\n    return x\n', {'args': [3], 'expected': 3}, function='count', prelude='lcb')['all_passed']
    forged = one(code='def sum(values):\n    return 3\ndef f():\n    return 1\n', tests='assert sum([f(), 1]) == 3', prelude='lcb')
    assert not forged['all_passed']


def test_a_policy_looks_at_the_submission_and_not_at_its_prelude():
    case = {'prelude': 'lcb', 'policy': 'kodeagent'}
    requests = ({**case, 'code': 'print(Counter([1])[1])', 'cases': [{'stdin': '', 'expected_stdout': '1'}]},
                {**case, 'code': 'def f(): return Counter([1])[1]', 'function': 'f', 'cases': [{'expected': 1}]},
                {**case, 'code': 'import os\nprint(1)', 'cases': [{'stdin': '', 'expected_stdout': '1'}]})
    assert [result['status'] for result in grade(*requests)] == ['completed', 'completed', 'blocked']


def test_the_prelude_of_rllm_has_arrays_where_they_are_installed():
    code = 'def f(x):\n    return int(np.sum(x)) if "np" in globals() or hasattr(__builtins__, "np") else sum(x)\n'
    assert calls(code, {'args': [[1, 2]], 'expected': 3}, prelude='rllm')['all_passed']


def test_the_zygote_has_the_preludes_that_the_engine_sends():
    source = open(os.path.join(os.path.dirname(__file__), '../../../src/lang/python/grading/preludes.py')).read()
    names = {}
    exec(compile(source, 'preludes', 'exec'), names)
    text = open(os.path.join(os.path.dirname(__file__), '../../../src/grading/prelude.c')).read()
    parts = {}
    for name in 'STARS', 'BUILTINS', 'RECURSION', 'ARRAYS':
        lines = text[text.index('#define ' + name):].replace('\\\n', '').split('\n', 1)[0]
        parts[name] = ''.join(json.loads('"%s"' % piece) for piece in lines.split('"')[1::2])
    assert names['TEXTS']['lcb'][0] == parts['STARS'] + parts['BUILTINS'] + parts['RECURSION']
    assert names['TEXTS']['verl'][0] == parts['STARS'] + parts['BUILTINS']
    assert names['TEXTS']['rllm'][0] == parts['STARS'] + parts['BUILTINS'] + parts['ARRAYS'] + parts['RECURSION']


# ---- helpers ----

NODES = '''
class Solution:
    def turn(self, head: Optional[ListNode]) -> Optional[ListNode]:
        if not head or not head.next:
            return head
        last = self.turn(head.next)
        head.next.next, head.next = head, None
        return last
    def merge(self, lists: List[Optional[ListNode]]) -> Optional[ListNode]:
        values = []
        for head in lists:
            while head:
                values.append(head.val)
                head = head.next
        first = last = ListNode()
        for value in sorted(values):
            last.next = ListNode(value)
            last = last.next
        return first.next
    def mirror(self, root: 'TreeNode') -> 'TreeNode':
        if root:
            root.left, root.right = self.mirror(root.right), self.mirror(root.left)
        return root
    def circle(self) -> ListNode:
        node = ListNode(1)
        node.next = node
        return node
    def plain(self, values):
        return values[::-1]
'''


def test_lists_become_nodes_by_type_hints_and_nodes_lists():
    cases = [{'function': 'turn', 'args': [[1, 2, 3]], 'expected': [3, 2, 1]}, {'function': 'turn', 'args': [[]], 'expected': []},
             {'function': 'merge', 'args': [[[1, 4], [], [2]]], 'expected': [1, 2, 4]}, {'function': 'mirror', 'args': [[1, 2, 3, None, 4]], 'expected': [1, 3, 2, None, None, 4]},
             {'function': 'plain', 'args': [[1, 2]], 'expected': [2, 1]}, {'function': 'circle', 'args': [], 'expected': [1]}]
    result = one(code=NODES, cases=cases, helpers='leetcode', prelude='lcb')
    assert statuses(result) == ['passed', 'passed', 'passed', 'passed', 'passed', 'error'], result
    without = one(code=NODES, cases=cases[:1], prelude='lcb')
    assert without['status'] == 'failed' and without['error']['type'] == 'NameError'


def test_tests_have_nodes_of_their_own():
    check = ('def check(candidate):\n    assert is_same_list(candidate(head = list_node([1, 2])), list_node([2, 1]))\n'
             '    assert is_same_list(candidate(list_node([])), None)\n')
    tree = 'def check(candidate):\n    assert is_same_tree(candidate(root = tree_node([1, 2, 3])), tree_node([1, 3, 2]))\n'
    forge = NODES.replace('return last\n', 'return head\n', 1) + '\nclass ListNode(ListNode):\n    def __eq__(self, other):\n        return True\ndef is_same_list(*_):\n    return True\n'
    requests = [{'format': 'leetcode', 'code': code, 'test': test, 'entry_point': 'Solution().' + name} for code, test, name in (
        (NODES, check, 'turn'), (NODES, tree, 'mirror'), (forge, check, 'turn'), (NODES, tree.replace('1, 3, 2', '1, 2, 3'), 'mirror'))]
    assert [result['all_passed'] for result in grade(*requests)] == [True, True, False, False]


# ---- selection ----

def test_a_part_of_the_cases_is_run():
    cases = [{'stdin': text, 'expected_stdout': text} for text in ('1', '333', '22', '333')]
    results = grade(*({'code': 'print(input())', 'cases': cases, **more} for more in (
        {'max_cases': 2}, {'select': 'first', 'max_cases': 2}, {'select': 'longest', 'max_cases': 2}, {'select': 'longest', 'max_cases': 3}, {'max_cases': 9}, {'select': 'longest'})))
    assert [[case['name'] for case in result['cases']] for result in results] == [
        ['case 1', 'case 2'], ['case 1', 'case 2'], ['case 2', 'case 4'], ['case 2', 'case 3', 'case 4'], ['case 1', 'case 2', 'case 3', 'case 4'],
        ['case 1', 'case 2', 'case 3', 'case 4']]
    assert all(result['all_passed'] and result['total'] == len(result['cases']) for result in results)
    assert [case['name'] for case in calls(ADD, {'args': [1, 1], 'expected': 2}, {'args': [100, 1], 'expected': 101}, function='add', select='longest', max_cases=1)['cases']] == ['case 2']


# ---- references ----

WITH_REFERENCE = {'function': 'add', 'reference': ADD, 'cases': [{'args': [1, 2]}, {'args_python': '((1,), (2,))'}, {'args': [1, 1], 'expected': 2}]}


def test_a_reference_gives_the_expected_values():
    good, bad = grade({**WITH_REFERENCE, 'code': ADD}, {**WITH_REFERENCE, 'code': 'def add(a, b):\n    return [*a, *b] if type(a) is tuple else a + b\n'}, options=('-j', '1'))
    assert good['all_passed'] and good['total'] == 3
    assert statuses(bad) == ['passed', 'failed', 'passed'] and bad['cases'][1]['detail'] == 'Expected (1, 2), got [1, 2]'


def test_a_reference_runs_once_for_all_submissions_of_a_problem():
    batch = [{**WITH_REFERENCE, 'code': ADD}] * 6
    assert [result['runs'] for result in grade(*batch, options=('-j', '1'))] == [2, 1, 1, 1, 1, 1]
    assert sorted(result['runs'] for result in grade(*batch, options=('-j', '6'))) == [1, 1, 1, 1, 1, 2]
    assert [result['runs'] for result in grade(*batch[:3], options=('-j', '1', '--set', 'grading.reference_cache_bytes=0'))] == [2, 2, 2]
    others = [{**WITH_REFERENCE, 'code': ADD, **more} for more in ({}, {'prelude': 'lcb'}, {'setup': 'x = 1'}, {'reference': ADD + '\n'}, {'cases': [{'args': [1, 3]}]}, {'image': 'system'}, {})]
    results = grade(*others, options=('-j', '1'))
    assert [result['runs'] for result in results] == [2] * 6 + [1] and all(result['all_passed'] for result in results)
    assert 'grading.reference_cache_bytes' in caisson('grade', '--set', 'grading.reference_cache_bytes=1TiB', '-', stdin=b'{}').err


def test_values_are_dropped_when_there_are_too_many():
    def problem(n):
        return {'code': 'def f(n):\n    return "x" * n\n', 'reference': 'def f(n):\n    return "x" * n\n', 'function': 'f', 'cases': [{'args': [3000 + n]}]}
    results = grade(*(problem(n) for n in (0, 1, 0, 2, 3, 0)), options=('-j', '1', '--set', 'grading.reference_cache_bytes=8KiB'))
    assert [result['runs'] for result in results] == [2, 2, 1, 2, 2, 2] and all(result['all_passed'] for result in results)


@pytest.mark.parametrize('reference, words', [
    ('def add(a, b):\n    raise ValueError("no")\n', 'raised ValueError no'), ('def add(a, b:\n', 'the reference failed'), ('def sub(a, b):\n    return 1\n', "'add' is not in the reference"),
    ('def add(a, b):\n    import os\n    os._exit(0)\n', 'exited'), ('raise SystemExit\n', 'the reference failed'), ('def add(a, b):\n    return object()\n', 'unencodable'),
    ('def add(a, b):\n    while True: pass\n', 'timeout'),
])
def test_a_reference_that_fails_says_nothing_about_the_submission(reference, words):
    result = grade({**WITH_REFERENCE, 'reference': reference, 'code': ADD, 'case_cpu_ms': 100}, status=125)[0]
    assert result['status'] == 'engine_error' and result['error']['code'] == 'reference_failed' and words in result['error']['message'], result
    assert result['mask'] and result['score'] is None and not result['retryable'] and not result['all_passed']


def test_a_submission_cannot_reach_the_reference():
    code = 'import os\nopen("/dev/shm/x", "w").write("1")\ndef add(a, b):\n    os.kill(os.getppid(), 9)\n'
    reference = 'import os\ndef add(a, b):\n    return a + b if not os.path.exists("/dev/shm/x") else 0\n'
    results = grade({**WITH_REFERENCE, 'reference': reference, 'code': code}, {**WITH_REFERENCE, 'reference': reference, 'code': ADD}, options=('-j', '1'))
    assert not results[0]['mask'] and not results[0]['all_passed'] and results[1]['all_passed']
    assert one(**WITH_REFERENCE, code='1', language='javascript')['error']['field'] == '/reference'
