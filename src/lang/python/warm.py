"""Do in a forked process what a program will do, before there is one.

After a fork the first touch of every page costs a fault, and an interpreter touches many.  Here they happen while
nobody waits.  Nothing may remain that a program could see: what has a random state is seeded after this, and the rest
works on objects of its own.
"""

import gc
import sys

PROGRAM = b'''
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
{'a': [1, 2.5, None]}
'''


def touch_types():
    """Objects count their references in themselves: to look at one is to write to it."""
    for name, thing in list(vars(sys.modules['builtins']).items()):
        if type(thing) is type:
            for attribute in vars(thing).values():
                thing = attribute


def run_sample(out, program):
    """The whole way of a program, but for the channel and the end.  Returns its value."""
    names = {'__name__': '__main__', '__builtins__': sys.modules['builtins']}
    code, last = compile_program(program, '<warm>')
    out, sys.stdout = sys.stdout, out
    try:
        exec(code, names)
        return eval(last, names)
    finally:
        sys.stdout = out


def warm_numpy(numpy):
    table = numpy.arange(600, dtype=float).reshape(20, 30)
    (table @ table.T).sum(axis=0).mean()
    numpy.linalg.solve(numpy.eye(3) * 2, numpy.ones(3))
    numpy.random.RandomState(1).normal(size=10)
    numpy.random.default_rng(1).normal(size=10)
    str(numpy.sqrt(table[table > 5][:10]))


def warm_pandas(pandas):
    """Little of much: describe() alone would take as long as all of this."""
    frame = pandas.read_csv(sys.modules['io'].StringIO('group,x,y\na,1,0.5\nb,2,\na,3,2.5\n'))
    frame['z'] = frame['x'] * 2 + frame['y'].fillna(0)
    str(frame.groupby('group')['z'].sum())
    str(frame)


DEEP = {'numpy': warm_numpy, 'pandas': warm_pandas}


def warm(depth):
    """1: the little that every program does.  2: what many do, and the image's large modules."""
    if depth < 1:
        return
    out = sys.modules['io'].TextIOWrapper(sys.modules['io'].BytesIO(), 'utf-8', write_through=True)
    run_sample(out, b'print(1, "a")\n')
    if depth == 1:
        return
    touch_types()
    load_part('report')['value_document'](run_sample(out, PROGRAM), 1000)
    for name, exercise in DEEP.items():
        if name in sys.modules:
            exercise(sys.modules[name])
    gc.collect()
