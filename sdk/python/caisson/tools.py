"""Tools that programs call and this process serves: plain functions, described by signature and doc string.

    def add(a: int, b: int = 0) -> int:
        "Add two numbers."
        return a + b

    client.run('print(tools.add(a=1, b=2))', tools=[add])
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import re
import typing
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .errors import InvalidRequest

Function = Callable[..., Any]
Approve = Callable[[str, Dict[str, Any]], Any]

DESCRIPTION_MAX = 8192  # characters of a description at the server
ERROR_MAX = 4000  # characters of an error at the server
NESTED_MAX = 20  # a type that names itself ends here, as any value

SIMPLE: Mapping[Any, str] = {str: 'string', int: 'integer', float: 'number', bool: 'boolean', type(None): 'null'}
LISTS = (list, tuple, set, frozenset, typing.get_origin(Sequence[int]), typing.get_origin(typing.Iterable[int]))


# ---- schemas ----


def schema_of(kind: Any, depth: int = 0) -> Dict[str, Any]:
    """The JSON Schema of an annotation; an annotation that has none takes any value."""
    if kind in SIMPLE:
        return {'type': SIMPLE[kind]}
    if depth > NESTED_MAX:
        return {}
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if hasattr(kind, '__metadata__'):
        texts = [one for one in kind.__metadata__ if isinstance(one, str)]
        return {**schema_of(args[0], depth), **({'description': texts[0]} if texts else {})}
    if origin is typing.Literal:
        return {'enum': list(args)}
    if origin is Union or type(kind).__name__ == 'UnionType':
        return {'anyOf': [schema_of(one, depth + 1) for one in args]}
    if kind in LISTS or origin in LISTS:
        items = [one for one in args if one is not Ellipsis]
        return {'type': 'array', **({'items': schema_of(items[0], depth + 1)} if len(set(items)) == 1 else {})}
    if kind is dict or origin in (dict, typing.get_origin(Mapping[str, int])):
        return {'type': 'object', **({'additionalProperties': schema_of(args[1], depth + 1)} if len(args) == 2 else {})}
    return schema_of_class(kind, depth)


def schema_of_class(kind: Any, depth: int) -> Dict[str, Any]:
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {'enum': [one.value for one in kind]}
    if dataclasses.is_dataclass(kind):
        required = [
            one.name
            for one in dataclasses.fields(kind)
            if one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
        ]
        return object_schema(kind, required, depth)
    if hasattr(kind, '__required_keys__'):
        return object_schema(kind, sorted(kind.__required_keys__), depth)
    return {}


def object_schema(kind: Any, required: List[str], depth: int) -> Dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    members = {name: schema_of(hint, depth + 1) for name, hint in hints.items()}
    return {'type': 'object', 'properties': members, 'required': required}


def described_parameters(text: str) -> Dict[str, str]:
    """What a doc string says of parameters: lines `:param NAME: TEXT`, or `NAME: TEXT` below a line `Args:`."""
    found = {name: words.strip() for name, words in re.findall(r'^\s*:param\s+(\w+):\s*(.+)$', text, re.MULTILINE)}
    section = re.search(r'^(?:Args|Arguments|Parameters):\s*\n((?:[ \t]+.*\n?|\n)*)', text, re.MULTILINE)
    if section:
        for name, words in re.findall(r'^\s+\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.+)$', section[1], re.MULTILINE):
            found.setdefault(name, words.strip())
    return found


def summary_of(text: str) -> str:
    """A doc string up to its description of parameters and results."""
    head = re.split(r'^\s*(?::param|:return|(?:Args|Arguments|Parameters|Returns|Raises):\s*$)', text, flags=re.MULTILINE)
    return head[0].strip()[:DESCRIPTION_MAX]


def input_schema(function: Function, name: str) -> Dict[str, Any]:
    """The schema of the arguments, by the signature.  Arguments are given by name, so each parameter needs one."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        hints = {}
    texts = described_parameters(inspect.getdoc(function) or '')
    members: Dict[str, Any] = {}
    required: List[str] = []
    is_open = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise InvalidRequest(
                f'the tool {name} has the parameter {parameter}, which has no name for a caller; '
                'arguments of tools are given by name',
                field='tools',
            )
        if parameter.kind is parameter.VAR_KEYWORD:
            is_open = True
            continue
        members[parameter.name] = schema_of(hints.get(parameter.name, Any))
        if parameter.name in texts:
            members[parameter.name].setdefault('description', texts[parameter.name])
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    return {'type': 'object', 'properties': members, 'required': required, 'additionalProperties': is_open}


# ---- tools ----


@dataclass(frozen=True)
class Tool:
    """A function with another name, description or schema than its own.  `ask`: each call waits for approve()."""

    function: Function
    name: str = ''
    description: str = ''
    input_schema: Optional[Mapping[str, Any]] = None
    ask: bool = False

    @property
    def own_name(self) -> str:
        return self.name or getattr(self.function, '__name__', '') or type(self.function).__name__

    def to_json(self) -> Dict[str, Any]:
        name = self.own_name
        schema = self.input_schema if self.input_schema is not None else input_schema(self.function, name)
        text = self.description or summary_of(inspect.getdoc(self.function) or '')
        return {
            'name': name,
            **({'description': text} if text else {}),
            'input_schema': dict(schema),
            **({'ask': True} if self.ask else {}),
        }


class Toolbox:
    """The tools of one run: what the request says of them, and the functions of this process."""

    def __init__(self, request: Dict[str, Any], functions: Dict[str, Function], approve: Optional[Approve]) -> None:
        self.request = request
        self.functions = functions
        self.approve = approve

    @property
    def needs_events(self) -> bool:
        return bool(self.functions or self.approve)

    @classmethod
    def of(cls, tools: Any, approve: Optional[Approve] = None) -> Toolbox:
        """From functions, Tool objects and names of the server's tools; or from the member `tools` of a request."""
        if tools is None:
            return cls({}, {}, approve)
        if isinstance(tools, Mapping):
            functions, request = take_functions(tools.get('client') or ())
            return cls({**tools, **({'client': request['client']} if 'client' in tools else {})}, functions, approve)
        if callable(tools) or isinstance(tools, (str, Tool)):
            tools = [tools]
        functions, request = take_functions(tools)
        if functions:
            request = {'decode': True, 'raise': True, **request}
        return cls(request, functions, approve)


def take_functions(tools: Sequence[Any]) -> Tuple[Dict[str, Function], Dict[str, Any]]:
    functions: Dict[str, Function] = {}
    client: List[Mapping[str, Any]] = []
    allow: List[str] = []
    for one in tools:
        if isinstance(one, str):
            allow.append(one)
        elif isinstance(one, Mapping):
            client.append(one)
        elif isinstance(one, Tool) or callable(one):
            tool = one if isinstance(one, Tool) else Tool(one)
            if tool.own_name in functions:
                raise InvalidRequest(f'two tools have the name {tool.own_name}; give one by Tool(name=...)', field='tools')
            functions[tool.own_name] = tool.function
            client.append(tool.to_json())
        else:
            raise InvalidRequest(
                f'tools has {one!r}; it takes functions, caisson.Tool and names of tools of the server', field='tools'
            )
    return functions, {**({'client': client} if client else {}), **({'allow': allow} if allow else {})}


# ---- answers ----


def result_of(call: str, value: Any) -> Dict[str, Any]:
    """The answer to a call; a value that is no JSON is an error of the tool."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return error_of(call, f'the result of the tool is no JSON: {error}')
    return {'call': call, 'result': value}


def error_of(call: str, text: str) -> Dict[str, Any]:
    return {'call': call, 'error': (text or 'the tool failed')[:ERROR_MAX]}


def failure_of(call: str, error: BaseException) -> Dict[str, Any]:
    return error_of(call, f'{type(error).__name__}: {error}')


def approval_of(call: str, answer: Any) -> Dict[str, Any]:
    """approve() returns whether the call may be made; a text says why not."""
    if isinstance(answer, str):
        return {'call': call, 'approve': False, 'error': answer[:ERROR_MAX]}
    return {'call': call, 'approve': bool(answer)}


def arguments_of(event: Mapping[str, Any]) -> Dict[str, Any]:
    given = event.get('arguments')
    return {str(name): value for name, value in given.items()} if isinstance(given, dict) else {}
