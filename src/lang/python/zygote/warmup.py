"""What a zygote does before there is a program: sample programs, whose way through the interpreter warms it."""

import sys

LITTLE = b'print(1, "a")\n'
MUCH = b'''
import os
import sys

class Sample:
    def __init__(self, size):
        self.items = {str(n): [n, n / 3] for n in range(size)}

    def total(self):
        return sum(pair[1] for pair in self.items.values())

def work(size):
    try:
        total = Sample(size).total()
        return f'{total:.3f} {size!r}'.split()
    finally:
        size = None

print(*work(20), sep=', ')
for word in sorted(work(30), key=len):
    print(word.upper(), len(word) % 3)
'''
# For each module a little, that nearly every program does which imports it, and then much.
OF_MODULES = {
    'numpy': (b'''
import numpy
float((numpy.arange(100.0) * 2).sum())
''', b'''
table = numpy.arange(600, dtype=float).reshape(20, 30)
(table @ table.T).sum(axis=0).mean()
numpy.linalg.solve(numpy.eye(3) * 2, numpy.ones(3))
numpy.random.RandomState(1).normal(size=10)
numpy.random.default_rng(1).normal(size=10)
str(numpy.sqrt(table[table > 5][:10]))
'''),
    'pandas': (b'''
import pandas
frame = pandas.DataFrame({'group': [1, 2, 1], 'x': range(3)})
frame.groupby('group')['x'].sum().to_dict()
frame['z'] = frame['x'] * 2
str(frame)
''', b'''
import io
frame = pandas.read_csv(io.StringIO('group,x,y\\na,1,0.5\\nb,2,\\na,3,2.5\\n'))
frame['z'] = frame['x'] * 2 + frame['y'].fillna(0)
str(frame.groupby('group')['z'].sum())
str(frame)
'''),
}
# What a role (role.py) is told in a rehearsal: its program, and the messages of the engine and of the other side.
ROLES = {
    'cases': (b'', (
        b'E{"op":"begin","role":"cases","setup":"def f(x): return x","function":"f","cases":[{"i":0,"args":"[1]"},{"i":1,"args":"[[1.5,{\\"a\\":null}]]"}]}',
    )),
    'shared': (b'', (
        b'E{"op":"begin","role":"cases","instance":"shared","setup":"def f(x): return x","function":"f","cases":[{"i":0,"args":"[1]"},{"i":1,"args":"[[1.5,{\\"a\\":null}]]"}]}',
    )),
    'subject': (b'def f(x):\n    return x + x\n', (
        b'E{"op":"begin","role":"subject","setup":""}',
        b'P{"n":1,"op":"names","h":null,"a":[],"k":[],"gone":[]}',
        b'P{"n":2,"op":"value","h":null,"name":"f","a":[],"k":[],"gone":[]}',
        b'P{"n":3,"op":"call","h":1,"a":[[1,2]],"k":[],"gone":[]}',
        b'P{"n":4,"op":"call","h":1,"a":["a"],"k":[],"gone":[]}',
        b'E{"op":"end"}',
    )),
    'tests': (b'def check(candidate):\n    assert candidate([1, 2]) == [1, 2, 1, 2]\n    assert candidate("a") == "aa"\n', (
        b'E{"op":"begin","role":"tests","setup":"","entry_point":"f"}',
        b'P{"re":1,"c":[],"f":[],"v":["f"]}',
        b'P{"re":2,"c":[],"f":[],"v":{"t":"callable","v":[1,"f",true,0]}}',
        b'P{"re":3,"c":[],"f":[],"v":[1,2,1,2]}',
        b'P{"re":4,"c":[],"f":[],"v":"aa"}',
    )),
}
VALUE = b"{'a': [1, 2.5, None]}\n"


def program(depth):
    """The text for a depth: 0 none, 1 the little that every program does, 2 what many do."""
    if not depth:
        return None
    of_modules = [texts for name, texts in OF_MODULES.items() if name in sys.modules]
    little = LITTLE + b''.join(texts[0] for texts in of_modules)
    return little if depth < 2 else little + MUCH + b''.join(texts[1] for texts in of_modules) + VALUE
