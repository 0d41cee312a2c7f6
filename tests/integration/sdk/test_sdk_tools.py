"""Schemas of tools of sdk/python: functions as the server and models see them."""

import dataclasses
import enum
import functools
import typing
from typing import Any, Dict, List, Literal, Optional, Tuple, TypedDict, Union

import jsonschema
import pytest

import caisson
from caisson import tools


class Colour(enum.Enum):
    RED = 'red'
    BLUE = 'blue'


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


class Row(TypedDict):
    name: str
    values: List[int]


Tree = Dict[str, 'Tree']


def weather(city: str, days: int = 3, unit: Literal['C', 'F'] = 'C') -> dict:
    """The forecast of a city.

    Args:
        city: Its name.
        days (int): How many days.

    Returns:
        Temperatures.
    """
    return {}


def test_a_signature_and_a_doc_string_are_the_description():
    tool = caisson.Tool(weather).to_json()
    assert (tool['name'], tool['description']) == ('weather', 'The forecast of a city.')
    assert tool['input_schema'] == {
        'type': 'object', 'required': ['city'], 'additionalProperties': False,
        'properties': {'city': {'type': 'string', 'description': 'Its name.'}, 'days': {'type': 'integer', 'description': 'How many days.'},
                       'unit': {'enum': ['C', 'F']}}}


def test_descriptions_of_sphinx_and_of_annotated_count():
    def one(a: int, b: 'int' = 0):
        """Sum.

        :param a: The first.
        :return: It.
        """
    got = caisson.Tool(one).to_json()
    assert got['description'] == 'Sum.' and got['input_schema']['properties']['a'] == {'type': 'integer', 'description': 'The first.'}
    if hasattr(typing, 'Annotated'):
        assert tools.schema_of(typing.Annotated[int, 'Years.']) == {'type': 'integer', 'description': 'Years.'}


@pytest.mark.parametrize('kind, schema', [
    (str, {'type': 'string'}), (bool, {'type': 'boolean'}), (float, {'type': 'number'}), (type(None), {'type': 'null'}), (Any, {}), (object, {}),
    (list, {'type': 'array'}), (List[int], {'type': 'array', 'items': {'type': 'integer'}}), (Tuple[int, ...], {'type': 'array', 'items': {'type': 'integer'}}),
    (Tuple[int, str], {'type': 'array'}), (dict, {'type': 'object'}), (Dict[str, int], {'type': 'object', 'additionalProperties': {'type': 'integer'}}),
    (Optional[str], {'anyOf': [{'type': 'string'}, {'type': 'null'}]}), (Union[int, str], {'anyOf': [{'type': 'integer'}, {'type': 'string'}]}),
    (Colour, {'enum': ['red', 'blue']}),
    (Point, {'type': 'object', 'properties': {'x': {'type': 'number'}, 'y': {'type': 'number'}}, 'required': ['x']}),
    (Row, {'type': 'object', 'properties': {'name': {'type': 'string'}, 'values': {'type': 'array', 'items': {'type': 'integer'}}}, 'required': ['name', 'values']})])
def test_annotations_are_schemas(kind, schema):
    assert tools.schema_of(kind) == schema
    jsonschema.Draft202012Validator.check_schema(schema)


def test_a_type_that_names_itself_ends_as_any_value():
    @dataclasses.dataclass
    class Node:
        children: 'List[Node]'
    Node.__init__.__globals__['Node'] = Node
    globals()['Node'] = Node
    jsonschema.Draft202012Validator.check_schema(tools.schema_of(Node))


def test_functions_whose_arguments_have_no_names_are_refused():
    def many(*values: int):
        pass

    def ordered(a, /):
        pass
    for function in (many, ordered):
        with pytest.raises(caisson.InvalidRequest) as caught:
            tools.Toolbox.of([function])
        assert caught.value.field == 'tools' and function.__name__ in str(caught.value)


def test_any_callable_is_a_tool():
    class Adder:
        """Adds."""

        def __call__(self, a: int) -> int:
            return a + 1

        def method(self, a: int) -> int:
            return a
    box = tools.Toolbox.of([Adder(), Adder().method, caisson.Tool(functools.partial(weather, days=1), name='tomorrow', description='One day.')])
    assert sorted(box.functions) == ['Adder', 'method', 'tomorrow'] and box.functions['Adder'](a=1) == 2
    assert [one['name'] for one in box.request['client']] == ['Adder', 'method', 'tomorrow']


def test_a_list_of_names_and_functions_is_a_request():
    box = tools.Toolbox.of([weather, 'home.*'])
    assert box.request['allow'] == ['home.*'] and (box.request['decode'], box.request['raise']) == (True, True)
    assert tools.Toolbox.of('home.*').request == {'allow': ['home.*']}
    assert tools.Toolbox.of({'allow': ['a'], 'calls': 3}).request == {'allow': ['a'], 'calls': 3}
    whole = tools.Toolbox.of({'client': [weather], 'call_ms': 5})
    assert whole.request['call_ms'] == 5 and whole.functions == {'weather': weather} and 'decode' not in whole.request
    assert not tools.Toolbox.of(None).needs_events and tools.Toolbox.of(None, print).needs_events


@pytest.mark.parametrize('given', [[3], [None], [weather, weather]])
def test_what_is_no_tool_is_refused(given):
    with pytest.raises(caisson.InvalidRequest) as caught:
        tools.Toolbox.of(given)
    assert caught.value.field == 'tools'


def test_a_long_doc_string_is_cut():
    def long():
        pass
    long.__doc__ = 'x' * 20_000
    assert len(caisson.Tool(long).to_json()['description']) == tools.DESCRIPTION_MAX
