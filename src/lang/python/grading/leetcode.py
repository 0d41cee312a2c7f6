"""ListNode and TreeNode, for submissions and tests that take both for given, and lists in their place at the border.

A submission has the classes in its namespace.  A function whose type hints name one of them gets nodes where a list comes, and
gives a list where it has nodes; so no node crosses to another process, and whoever compares has lists.  The test code has classes of its
own with the same names, and the helpers that tests of LeetCode use.
"""

from functools import wraps
from re import compile as pattern

NODES_MAX = 1000000             # a list of nodes that goes in a circle has no end
KIND = pattern(r'\b(ListNode|TreeNode)\b')
IN_LIST = pattern(r'\b[Ll]ist\[')
CLASSES = '''
class ListNode:
    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next


class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val = val
        self.left = left
        self.right = right
'''
CODE = compile(CLASSES, '<helpers>', 'exec', 0, True)
Function = type(lambda: None)


def define(names):
    """The classes, in the namespace of a submission."""
    exec(CODE, names)


# ------------------------------------------------------------------------------------------------------- lists and nodes

def make_list(values, node):
    head = None
    for value in reversed(values):
        head = node(value, head)
    return head


def make_tree(values, node):
    """By levels; None is a child that is not there."""
    if not values or values[0] is None:
        return None
    root = node(values[0])
    parents, position = [root], 1
    for parent in parents:
        for side in 'left', 'right':
            if position < len(values) and values[position] is not None:
                child = node(values[position])
                setattr(parent, side, child)
                parents.append(child)
            position += 1
    return root


def list_values(head):
    values = []
    while head is not None:
        values.append(head.val)
        head = head.next
        if len(values) > NODES_MAX:
            raise ValueError('a linked list of more than %d nodes, or one that has no end' % NODES_MAX)
    return values


def tree_values(root):
    values, nodes = [], [root]
    for node in nodes:
        values.append(None if node is None else node.val)
        if node is not None:
            nodes += node.left, node.right
        if len(nodes) > NODES_MAX:
            raise ValueError('a tree of more than %d nodes, or one that has no end' % NODES_MAX)
    while values and values[-1] is None:
        values.pop()
    return values


MAKE = {'ListNode': make_list, 'TreeNode': make_tree}
VALUES = {'ListNode': list_values, 'TreeNode': tree_values}


# ------------------------------------------------------------------------------------------- in the submission's process

def kind_of(hint):
    """(name of the class, how many lists are around it), or None."""
    text = hint if type(hint) is str else hint.__name__ if isinstance(hint, type) and not hasattr(hint, '__origin__') else repr(hint)
    found = KIND.search(text)
    return (found.group(1), len(IN_LIST.findall(text[:found.start()]))) if found else None


def taken(value, kind, names):
    name, depth = kind
    if type(value) is not list:
        return value
    return [taken(one, (name, depth - 1), names) for one in value] if depth else MAKE[name](value, names[name])


def given(value, kind):
    name, depth = kind
    if depth:
        return [given(one, (name, depth - 1)) for one in value] if type(value) in (list, tuple) else value
    return VALUES[name](value)


def adapted(function, kinds, names, calls):
    """The function with lists in place of nodes, as long as none of these functions is being called already."""
    parameters = function.__code__.co_varnames[:function.__code__.co_argcount]

    @wraps(function)
    def call(*positional, **named):
        if calls:
            return function(*positional, **named)
        calls.append(None)
        try:
            positional = [taken(value, kinds[name], names) if name in kinds else value for name, value in zip(parameters, positional)
                          ] + list(positional[len(parameters):])
            named = {name: taken(value, kinds[name], names) if name in kinds else value for name, value in named.items()}
            value = function(*positional, **named)
            return given(value, kinds['return']) if 'return' in kinds else value
        finally:
            calls.pop()
    return call


def adapt_in(owner, members, names, calls):
    for name, value in list(members.items()):
        if type(value) is not Function:
            continue
        kinds = {parameter: kind_of(hint) for parameter, hint in value.__annotations__.items()}
        kinds = {parameter: kind for parameter, kind in kinds.items() if kind}
        if kinds:
            owner(name, adapted(value, kinds, names, calls))


def adapt(names):
    """The functions of a submission, and the methods of its class Solution."""
    calls = []
    adapt_in(names.__setitem__, names, names, calls)
    solution = names.get('Solution')
    if isinstance(solution, type):
        adapt_in(lambda name, value: setattr(solution, name, value), vars(solution), names, calls)


# ------------------------------------------------------------------------------------------------ in the tests' process

def for_tests():
    """The names that test code may use; what they decide is decided here."""
    names = {'__name__': 'tests'}
    exec(CODE, names)
    kinds = {names['ListNode']: list_values, names['TreeNode']: tree_values}

    def plain(value):
        values = kinds.get(type(value))
        if values:
            return values(value)
        return list(map(plain, value)) if type(value) is list else value

    def same(values):
        def decide(left, right):
            one, other = ([] if value is None else plain(value) for value in (left, right))
            return type(one) is list and type(other) is list and values(one) == values(other)
        return decide

    def trimmed(values):
        while values and values[-1] is None:
            values = values[:-1]
        return values

    def check_with(check):
        """check(candidate), where the candidate gets lists in place of nodes."""
        @wraps(check)
        def call(candidate):
            return check(lambda *positional, **named: candidate(*map(plain, positional), **{name: plain(value) for name, value in named.items()}))
        return call

    return {'ListNode': names['ListNode'], 'TreeNode': names['TreeNode'],
            'list_node': lambda values: make_list(values, names['ListNode']),
            'tree_node': lambda values: make_tree(values, names['TreeNode']),
            'is_same_list': same(list), 'is_same_tree': same(trimmed)}, check_with
