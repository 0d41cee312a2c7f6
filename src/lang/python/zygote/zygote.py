"""Start Python once, with the modules of an image, and fork a process for every run from it.

    python3 zygote.py IMAGE [DEPTH [OPTIONS MAINFILE]]

IMAGE is a row of preload.py's table.  DEPTH says how much memory a forked process makes its own before it has a program:
0 none, 1 what every program writes to, 2 what many do.  OPTIONS and MAINFILE are what most runs will have (run.py); without
them it is none.

_caisson is the C side: serve() forks into closed sandboxes and returns in each new process, wait() waits there for
the program, leave() ends it.  All of that is in a generator, which the interpreter calls with no frame below (drive.h): that of a program is the
first one.  A context (session.py) is served within start().  A run that needs another interpreter than the one we started is given to run.py.
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
names['split_last'], names['share_constants'] = zygote.caisson.split_last, zygote.caisson.share_constants
zygote.caisson.drive(zygote.runs(), sys.modules['__main__'])
raise KeyboardInterrupt     # which starts it
