"""Stand-ins for the packages of hosts: modules with the names that an adapter imports, and the comparison of signatures."""

import importlib
import inspect
import sys
import types


def stand_in(monkeypatch, adapter, **modules):
    """The adapter, imported anew beside these modules; `__` in a name stands for a dot."""
    for name, members in modules.items():
        path = name.replace('__', '.')
        parts = path.split('.')
        for end in range(1, len(parts) + 1):
            part = '.'.join(parts[:end])
            if part not in sys.modules or not hasattr(sys.modules[part], 'IS_STAND_IN'):
                module = types.ModuleType(part)
                module.IS_STAND_IN, module.__path__ = True, []
                monkeypatch.setitem(sys.modules, part, module)
        vars(sys.modules[path]).update(members)
    full = f'caisson.integrations.{adapter}'
    monkeypatch.delitem(sys.modules, full, raising=False)
    return importlib.import_module(full)


def shape(function):
    """The signature without annotations, as a text."""
    function = function.fget if isinstance(function, property) else function
    signature = inspect.signature(function)
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def check(kind, signatures):
    """Each method of the list has the parameters, kinds and defaults of the list; `async ` in front is for a coroutine function."""
    for name, wanted in signatures.items():
        value = inspect.getattr_static(kind, name)
        if isinstance(value, (classmethod, staticmethod)):
            value = value.__func__
        got = ('async ' if inspect.iscoroutinefunction(value) else '') + shape(value)
        assert got == wanted, f'{kind.__name__}.{name} is {got}; the host has {wanted}'
