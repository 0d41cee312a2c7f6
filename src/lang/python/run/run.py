"""Run one Python program and tell the engine, on a private channel, how it went.

    python3 run.py OPTIONS MAINFILE [ARGS...]

This is the first program of a user in a sandbox.  It makes the interpreter look as if it had been started with
MAINFILE, so it imports nothing that a program could miss or shadow: only what the interpreter loads itself and
modules built into it.  Python compiles this file at every start and keeps the bytecode of the others in __pycache__;
that is why it is short, and why runner.py has the rest.  zygote.py does the same in a process forked from a warm one.

Nothing here is a security boundary: the program owns this process and may write to the channel what it likes.
The engine checks every frame.
"""

import builtins
import sys

# A program may replace builtins.  Functions defined from here on keep the ones that Python came with.
__builtins__ = dict(vars(builtins))

HERE = __file__.rpartition('/')[0] or '.'
FileLoader = sys.modules['_frozen_importlib_external'].SourceFileLoader
names = {'__builtins__': __builtins__, '__name__': 'runner', 'HERE': HERE, 'FileLoader': FileLoader}
exec(FileLoader('runner', HERE + '/runner.py').get_code('runner'), names)

if len(sys.argv) < 3:
    sys.stderr.write('usage: run.py OPTIONS MAINFILE [ARGS...]\n')
    raise SystemExit(2)

main = sys.modules['__main__']
steps = names['Runner'](sys.argv[1], sys.argv[2], sys.argv[3:]).steps()
cold, perform = names['find_cold'](), names['perform']
if cold is not None:
    cold.drive(steps, main)
    raise KeyboardInterrupt     # which starts it, with no frame but the program's
# An interpreter that cannot load ours: the program sees this frame.
reply, settings = None, (sys.settrace, sys.setprofile)
while True:
    try:
        work, given, tracing = steps.send(reply)
    except StopIteration as end:
        ending, tracing = end.value
        break
    reply = perform(work, given)
    work = given = None
    tracing = sys.gettrace(), sys.getprofile()
    for set_function in settings:
        set_function(None)
    reply = *reply, tracing
reply = None
if type(ending) is KeyboardInterrupt:
    sys.excepthook = lambda *shown: None    # it has been shown
for set_function, function in zip(settings, tracing):
    set_function(function)
if ending is not None:
    raise ending
