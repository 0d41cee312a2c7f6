"""Start Python once, with the modules of an image, and fork a process for every run from it.

    python3 zygote.py IMAGE [DEPTH [OPTIONS MAINFILE]]

IMAGE is a row of preload.py's table.  DEPTH says how much memory a forked process makes its own before it has a program:
0 none, 1 what every program writes to, 2 what many do.  OPTIONS and MAINFILE are what most runs will have (run.py); without
them it is none.

_caisson is the C side: serve() forks into closed sandboxes and returns in each new process, wait() waits there for
the program, leave() ends it.  A context (session.py) is served within start().  The rest of this file is run.py for such a process, so a program sees one foreign frame
here as there.  A run that needs another interpreter than the one we started is given to run.py.
"""

import builtins
import sys

__builtins__ = dict(vars(builtins))

HERE = __file__.rpartition('/')[0] or '.'
FileLoader = sys.modules['_frozen_importlib_external'].SourceFileLoader
names = {'__builtins__': __builtins__, '__name__': 'runner', 'HERE': HERE, 'FileLoader': FileLoader}
exec(FileLoader('runner', HERE + '/runner.py').get_code('runner'), names)

if len(sys.argv) not in (2, 3, 5):
    sys.stderr.write('usage: zygote.py IMAGE [DEPTH [OPTIONS MAINFILE]]\n')
    raise SystemExit(2)

zygote = names['load_part']('preload')['Zygote'](names, sys.argv[1], sys.argv[2:])
names['send_frame'] = zygote.caisson.send_frame
names['split_last'] = zygote.caisson.split_last
serve, begin, wait, start, run, is_plain, end = map(zygote.caisson.__getattribute__, ('serve', 'begin', 'wait', 'start', 'run', 'is_plain', 'end'))
settings = sys.settrace, sys.setprofile
# All names that there will be: a new one would copy the memory that they are in.
rehearsed = came = program = runner = error = value = ending = tracing = set_function = has_threads = None
prepared = zygote.prepare()
rehearsed = serve(*prepared)
# From here on we are a run, usual (usual.h) or not.
if not begin():
    zygote.begin(rehearsed)
came = wait()
program = start(came)
if not program:
    runner = zygote.receive(came)
    program = zygote.start(runner)
try:
    value = run(program, runner and runner.names)
except BaseException as caught:
    error = caught
runner = runner or zygote.expected_run
tracing = sys.gettrace(), sys.getprofile()
for set_function in settings:
    set_function(None)
if not is_plain(error, value):
    ending = runner.finish(error, value)
    error = value = None
has_threads = end(ending, *tracing)
for set_function in settings:           # an exit function may have
    set_function(None)
came = prepared = runner = program = zygote.expected_run = None
if has_threads:
    raise SystemExit(0)
zygote.leave.is_done = True
ending = zygote.end(ending, tracing)
for set_function, function in zip(settings, tracing):
    set_function(function)
raise ending
