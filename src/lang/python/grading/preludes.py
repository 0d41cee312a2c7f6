"""The texts of preludes that the engine sends (src/grading/prelude.c), for a zygote to execute them once.

A text that is not among these is executed in the process of the program, so nothing but time depends on these being the same.
"""

MODULES = ('string', 're', 'datetime', 'collections', 'heapq', 'bisect', 'copy', 'math', 'random', 'statistics', 'itertools', 'functools',
           'operator', 'io', 'sys', 'json', 'typing')
STARS = ''.join('from %s import *\n' % name for name in MODULES) + (
    'import string, re, datetime, collections, heapq, bisect, copy, math, random, statistics, itertools\n'
    'import functools, operator, io, sys, json, builtins, typing\n')
BUILTINS = (
    'for name in dir(builtins):\n'
    "    if name[:1] != '_':\n"
    '        globals().pop(name, None)\n'
    'del name\n')
ARRAYS = ''.join('try:\n    import %s\n    import %s as %s\nexcept ImportError:\n    pass\n' % (name, name, short)
                 for name, short in (('numpy', 'np'), ('pandas', 'pd')))
RECURSION = 'sys.setrecursionlimit(50000)\n'
# The text, and a module without which a zygote does not execute it.
TEXTS = {'lcb': (STARS + BUILTINS + RECURSION, 'typing'), 'verl': (STARS + BUILTINS, 'typing'),
         'rllm': (STARS + BUILTINS + ARRAYS + RECURSION, 'pandas')}
