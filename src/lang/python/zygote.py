import gc, sys, os
sys.path.insert(0, '/opt/caisson/python')
import _caisson
if sys.argv[1] == 'data':
    import numpy, pandas
import json, re, random, math, collections, datetime
HERE = '/opt/caisson/python'
keep = sys.modules['__main__']
import builtins; builtins.keepme = keep
gc.collect(); gc.freeze()
_caisson.serve(b'{"loaded":[]}')
argv, env = _caisson.wait()
os.environ.clear()
for e in env:
    k, _, v = e.partition(b'=')
    os.environb[k] = v
sys.argv = ['run.py'] + [os.fsdecode(a) for a in argv]
__file__ = '/opt/caisson/python/run.py'
status = 0
try:
    exec(compile(open(__file__).read(), __file__, 'exec'))
except SystemExit as e:
    status = e.code if isinstance(e.code, int) else (0 if e.code is None else 1)
import sys, _caisson
sys.stdout.flush(); sys.stderr.flush()
_caisson.leave(status)
