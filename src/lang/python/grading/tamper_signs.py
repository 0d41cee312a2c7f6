"""Signs that a program is after its grade and not its task: advice for people, which changes no verdict.

What the text of a program asks for is found in its syntax tree, so a comment or a message is no sign.
"""

import re
from _ast import (AST, Attribute, Call, Constant, Del, Expr, FunctionDef, Import, ImportFrom, Name, PyCF_ONLY_AST, Store,
                  alias, arg)

DETAIL_MAX = 200
OUTPUT_MAX = 1 << 16            # characters of an output that are looked at
SIGNS_MAX = 100
FROM_RUNNER = 'suspicious_eq', 'patched_builtins', 'foreign_descriptor'

INTERNALS = {
    'sys': ('_getframe', '_current_frames', 'settrace', 'setprofile'),
    'inspect': ('stack', 'currentframe', 'getouterframes', 'trace'),
    'gc': ('get_objects', 'get_referrers', 'get_referents'),
    'threading': ('settrace', 'setprofile'),
}
INTERNAL_MODULES = 'ctypes', '_ctypes', '_caisson'
INTERNAL_PATHS = '/proc/self', '/proc/%'
TEST_NAMES = 'test_cases', 'expected_output', 'expected_outputs', 'PYTEST_CURRENT_TEST'
MARKER = re.compile(r'__SANDBOX_(RESULTS|OK|ERR)__|\bCSN1\b')
VERDICT = re.compile(r'"(passed|all_passed|score|verdict)"\s*:|\b\d+ passed\b|^Ran \d+ tests? in |^OK$', re.MULTILINE)
JAVASCRIPT_INTERNALS = re.compile(r'\bprocess\.(binding|_linkedBinding|dlopen)\b|\bprepareStackTrace\b|/proc/self\b|'
                                  r'[\'"](?:node:)?(?:inspector|v8|vm)[\'"]')
JAVASCRIPT_TESTS = re.compile(r'\b(?:test_cases|testCases|expected_output|expectedOutput|PYTEST_CURRENT_TEST)\b')


def sign(name, detail, index=None):
    found = {'sign': name, 'detail': detail[:DETAIL_MAX]}
    return found if index is None else {'i': index, **found}


def of_result(index, result):
    """What a case has done; the signs of its runner among it, as far as they are such."""
    found = []
    output = result.get('stdout')
    if type(output) is str:
        for name, pattern in ('forged_marker', MARKER), ('verdict_shaped_output', VERDICT):
            match = pattern.search(output[:OUTPUT_MAX])
            if match:
                found.append(sign(name, match.group().strip(), index))
    if result.get('how') == 'exited':
        found.append(sign('early_exit', 'exit status %.20s' % (result.get('exit_code'),), index))
    told = result.get('signs')
    for item in told[:SIGNS_MAX] if type(told) is list else ():
        if type(item) is dict and item.get('sign') in FROM_RUNNER and type(item.get('detail')) is str:
            found.append(sign(item['sign'], item['detail'], index))
    return found


def of_program(language, text):
    return of_python(text) if language == 'python' else list(of_javascript(text))


def of_javascript(text):
    for name, pattern in ('reads_internals', JAVASCRIPT_INTERNALS), ('reads_tests', JAVASCRIPT_TESTS):
        for match in pattern.finditer(text):
            yield sign(name, '%s, line %d' % (match.group(), text.count('\n', 0, match.start()) + 1))


def of_python(text):
    try:
        tree = compile(text, '<program>', 'exec', PyCF_ONLY_AST, True)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
    nodes = list(nodes_of(tree))
    own = own_names(nodes)
    modules = module_names(nodes)
    found = []
    for node in nodes:
        asked = internal_of(node, modules)
        if asked:
            found.append(sign('reads_internals', '%s, line %d' % (asked, node.lineno)))
        elif test_name_of(node, own):
            found.append(sign('reads_tests', '%s, line %d' % (test_name_of(node, own), node.lineno)))
    return found


def nodes_of(tree):
    """All but texts that only stand there."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for field in node._fields:
            value = getattr(node, field, None)
            for child in reversed(value) if type(value) is list else (value,):
                if isinstance(child, AST) and not (type(child) is Expr and type(child.value) is Constant):
                    waiting.append(child)


def own_names(nodes):
    """What the program itself defines."""
    own = set()
    for node in nodes:
        if type(node) is Name and type(node.ctx) in (Store, Del):
            own.add(node.id)
        elif type(node) is arg:
            own.add(node.arg)
        elif type(node) is FunctionDef:
            own.add(node.name)
        elif type(node) is alias:
            own.add(node.asname or node.name)
    return own


def module_names(nodes):
    """The modules that names stand for."""
    return {name.asname or name.name.partition('.')[0]: name.name if name.asname else name.name.partition('.')[0]
            for node in nodes if type(node) is Import for name in node.names}


def internal_of(node, modules):
    """What of the interpreter's a node asks for, or None."""
    kind = type(node)
    if kind is Import:
        return next((name.name for name in node.names if name.name.partition('.')[0] in INTERNAL_MODULES), None)
    if kind is ImportFrom:
        module = node.module or ''
        if module.partition('.')[0] in INTERNAL_MODULES:
            return module
        return next(('%s.%s' % (module, name.name) for name in node.names if name.name in INTERNALS.get(module, ())), None)
    if kind is Attribute and type(node.value) is Name:
        return internal_name(node.value, node.attr, modules)
    if kind is Call and type(node.func) is Name and node.func.id == 'getattr' and len(node.args) > 1:
        thing, name = node.args[:2]
        return internal_name(thing, name.value, modules) if type(thing) is Name and type(name) is Constant else None
    if kind is Constant and type(node.value) is str and node.value.startswith(INTERNAL_PATHS):
        return node.value[:40]
    return None


def internal_name(thing, name, modules):
    module = modules.get(thing.id)
    return '%s.%s' % (module, name) if name in INTERNALS.get(module, ()) else None


def test_name_of(node, own):
    kind = type(node)
    name = node.id if kind is Name else node.value if kind is Constant else node.attr if kind is Attribute else None
    return name if type(name) is str and name in TEST_NAMES and name not in own else None
