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
wait, start, is_plain, end = zygote.caisson.wait, zygote.caisson.start, zygote.caisson.is_plain, zygote.caisson.end
settings = sys.settrace, sys.setprofile
# All names that there will be: a new one would copy the memory that they are in.
came = code = last = runner = error = value = ending = tracing = set_function = has_threads = None
zygote.serve()
# From here on we are a run, usual (usual.h) or not.
came = wait()
code = start(came)
if code:
    runner = zygote.expected_run
    code, last = code
else:
    runner = zygote.receive(came)
    code, last = zygote.start(runner)
try:
    exec(code, runner.names)
    if last is not None:
        value = eval(last, runner.names)
except BaseException as caught:
    error = caught
tracing = sys.gettrace(), sys.getprofile()
for set_function in settings:
    set_function(None)
if not is_plain(error, value):
    ending = runner.finish(error, value)
    error = value = None
has_threads = end(ending, *tracing)
for set_function in settings:           # an exit function may have
    set_function(None)
came = runner = code = last = zygote.expected_run = None
if has_threads:
    raise SystemExit(0)
zygote.leave.is_done = True
ending = zygote.end(ending, tracing)
for set_function, function in zip(settings, tracing):
    set_function(function)
raise ending
