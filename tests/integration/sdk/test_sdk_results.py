"""Results of sdk/python as objects: what a notebook shows of them, what a caller reads, and what a hostile program cannot do."""

import base64
import dataclasses
import json

import pytest

import caisson
from caisson import results
from cli import ROOT

PNG = base64.b64encode(b'\x89PNG\r\n\x1a\n0000').decode()
SCRIPT = '<script>alert(1)</script>'


def run(**more):
    return caisson.Run.from_json({'status': 'completed', **more})


def test_the_fields_of_a_run_are_those_of_the_record():
    members = json.loads((ROOT / 'schema/run_result.json').read_text())['properties']
    names = {field.name for field in dataclasses.fields(caisson.Run)} - {'extra', 'index'}
    assert names <= set(members), names - set(members)
    assert run(weather='fine').extra == {'weather': 'fine'}


def test_a_value_is_there_as_itself_and_as_a_text():
    assert (run(result={'type': 'dict', 'value': {'a': [1, 'é']}}).value, run(result={'type': 'dict', 'value': {'a': 'é'}}).text) == ({'a': [1, 'é']}, '{"a": "é"}')
    assert (run(result={'type': 'set', 'repr': '{1}'}).value, run(result={'type': 'set', 'repr': '{1}'}).text) == ('{1}', '{1}')
    assert (run().value, run().text, run(result=None).results) == (None, '', [])


def test_bytes_of_the_output_are_exact():
    one = run(stdout='a\ufffd', stdout_base64='Yf8=', stderr='é')
    assert (one.stdout_bytes, one.stderr_bytes) == (b'a\xff', 'é'.encode())


def test_a_picture_is_shown_by_a_notebook():
    display = run(displays=[{'data': {'image/png': PNG, 'text/plain': '<Figure>'}}]).results[0]
    assert display._repr_png_() == base64.b64decode(PNG) and display._repr_jpeg_() is None and repr(display) == '<Figure>'
    assert f'data:image/png;base64,{PNG}' in run(displays=[{'data': {'image/png': PNG}}])._repr_html_()
    assert caisson.Display({'application/json': '{"a": 1}'})._repr_json_() == {'a': 1}
    assert caisson.Display({'text/latex': '$x$'})._repr_latex_() == '$x$'


def test_a_downloaded_picture_is_a_result():
    one = run(files=[{'name': 'a.png', 'mime': 'image/png', 'size_bytes': 3, 'changed': False, 'content': 'hostile'}])
    assert one.files[0].content is None and one.results == []
    one.files[0].content = base64.b64decode(PNG)
    assert one.results[0]._repr_png_() == one.files[0]._repr_png_() == base64.b64decode(PNG) and one.file('a.png') is one.files[0] and one.file('b') is None


@pytest.mark.parametrize('record', [
    {'stdout': SCRIPT}, {'stderr': SCRIPT}, {'result': {'type': 'str', 'value': SCRIPT}}, {'result': {'type': 'str', 'repr': SCRIPT}},
    {'displays': [{'data': {'text/plain': SCRIPT}}]}, {'displays': [{'data': {'text/html': SCRIPT}}]}, {'displays': [{'data': {'image/svg+xml': f'<svg>{SCRIPT}</svg>'}}]},
    {'status': 'failed', 'error': {'message': SCRIPT}}, {'status': SCRIPT}, {'displays': [{'data': {'image/png': f'"{SCRIPT}'}}]}])
def test_a_program_puts_no_script_into_a_notebook(record):
    shown = run(**record)._repr_html_()
    assert '<script' not in shown
    assert 'sandbox' in shown if 'text/html' in str(record) else True
    for display in run(**record).results:
        assert '<script' not in str(display._repr_html_()) and not hasattr(display, '_repr_svg_') and not hasattr(display, '_repr_javascript_')


@pytest.mark.parametrize('value', [{}, {'status': None}, {'status': 3}, {'status': []}])
def test_a_record_without_a_status_is_no_result(value):
    with pytest.raises(caisson.EngineError) as caught:
        caisson.Run.from_json(value)
    assert caught.value.code == 'bad_answer'


@pytest.mark.parametrize('members', [{'displays': 5}, {'displays': [3, {'data': 5}]}, {'files': [None]}, {'result': 7}, {'error': 'x', 'status': 'failed'}, {'findings': 3},
                                     {'warnings': [1]}, {'result': {'data': 3}}])
def test_members_of_wrong_types_break_no_method(members):
    one = run(**members)
    assert isinstance(one.why(), list) and isinstance(one._repr_html_(), str) and isinstance(one.results, list)


def test_why_says_what_was_in_the_way():
    assert run().why() == []
    assert run(status='failed', exit_code=3).why() == ['the status of the run is failed, exit status 3']
    assert run(status='crashed', signal=11).why() == ['the status of the run is crashed, signal 11']
    one = run(status='blocked', error={'message': 'no', 'hint': 'try'}, findings=[{'rule': 'import', 'message': 'os'}], warnings=[{'code': 'x', 'text': 'careful'}])
    assert one.why() == ['no', 'try', 'import: os', 'careful']


def test_base64_that_is_none_is_an_error_of_the_answer():
    with pytest.raises(caisson.EngineError):
        results.decoded('a')
