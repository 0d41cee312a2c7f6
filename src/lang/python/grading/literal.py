"""Arguments and expected values as people write them: JSON, or a literal of Python.

A literal may also have what repr() writes of values that Python has no literal for: nan, inf, and calls of the types that
have a canonical form, with literals in them.  No such call can be a small text for a large value.
"""

from _ast import (Add, Attribute, BinOp, Call, Constant, Dict, List, Name, PyCF_ONLY_AST, Set, Sub, Tuple, UAdd, UnaryOp,
                  USub)

canon = load_part('canon')
CanonError, deep, read_json, scan_loosely = canon['CanonError'], canon['deep'], canon['read_json'], canon['scan_loosely']

NAMES = {'nan': float('nan'), 'inf': float('inf')}
LISTS = list, tuple, set
# The module of a type, and the types of its arguments.
CALLS = {
    'float': ('builtins', (str,)),
    'complex': ('builtins', (int, float)),
    'set': ('builtins', LISTS),
    'frozenset': ('builtins', LISTS),
    'bytearray': ('builtins', (bytes,)),
    'range': ('builtins', (int,)),
    'slice': ('builtins', (int, type(None))),
    'deque': ('collections', LISTS),
    'OrderedDict': ('collections', (dict, list)),
    'Counter': ('collections', (dict,)),
    'Decimal': ('decimal', (str, int)),
    'Fraction': ('fractions', (int,)),
    'datetime': ('datetime', (int,)),
    'date': ('datetime', (int,)),
    'time': ('datetime', (int,)),
    'timedelta': ('datetime', (int,)),
    'UUID': ('uuid', (str,)),
}


def read_value(document, name):
    """document[name] as JSON or document[name + '_python'] as a literal; and whether there is either."""
    text, literal = document.get(name), document.get(name + '_python')
    if text is not None:
        return read_json(text, scan_loosely), True
    return (None, False) if literal is None else (read_literal(literal), True)


def read_literal(text):
    try:
        # Not with a higher limit: the compiler's own stack has no room for it.
        tree = compile(text.strip(' \t\r\n'), '<literal>', 'eval', PyCF_ONLY_AST, True)
        with deep():
            return value_of(tree.body)
    except CanonError:
        raise
    except SyntaxError as error:
        raise CanonError('no Python literal: %s' % error.msg) from None
    except Exception as error:          # NUL bytes, too deep for the parser, a key that cannot be hashed, a date that is none
        raise CanonError('no Python literal: %.200s' % (error,)) from None


def value_of(node):
    read = READERS.get(type(node))
    if read is None:
        raise CanonError('no Python literal: a %s is in it' % type(node).__name__)
    return read(node)


def values_of(nodes):
    return [value_of(node) for node in nodes]


def read_name(node):
    if node.id not in NAMES:
        raise CanonError('no Python literal: %.100s is in it' % node.id)
    return NAMES[node.id]


def read_sign(node):
    number = value_of(node.operand)
    if type(number) not in (int, float, complex) or type(node.op) not in (UAdd, USub):
        raise CanonError('no Python literal: an operator is in it')
    return -number if type(node.op) is USub else number


def read_sum(node):
    """A complex number is written as one."""
    left, right = value_of(node.left), value_of(node.right)
    if type(left) not in (int, float) or type(right) is not complex or type(node.op) not in (Add, Sub):
        raise CanonError('no Python literal: an operator is in it')
    return left + right if type(node.op) is Add else left - right


def read_dict(node):
    if None in node.keys:
        raise CanonError('no Python literal: ** is in it')
    return dict(zip(values_of(node.keys), values_of(node.values)))


def read_call(node):
    """Also with its module's name before it."""
    function = node.func
    name = function.attr if type(function) is Attribute and type(function.value) is Name else getattr(function, 'id', None)
    module, kinds = CALLS.get(name, (None, ()))
    if module is None or (type(function) is Attribute and function.value.id != module):
        raise CanonError('no Python literal: a call is in it')
    arguments = values_of(node.args)
    named = {keyword.arg or '**': value_of(keyword.value) for keyword in node.keywords}
    for value in [*arguments, *named.values()]:
        if type(value) not in kinds:
            raise CanonError('no Python literal: %s() is in it with an argument of type %s' % (name, type(value).__name__))
    return getattr(__import__(module), name)(*arguments, **named)


READERS = {
    Constant: lambda node: node.value,
    Name: read_name,
    UnaryOp: read_sign,
    BinOp: read_sum,
    Tuple: lambda node: tuple(values_of(node.elts)),
    List: lambda node: values_of(node.elts),
    Set: lambda node: set(values_of(node.elts)),
    Dict: read_dict,
    Call: read_call,
}
