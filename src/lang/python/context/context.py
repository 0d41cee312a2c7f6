"""Serve executions in one Python interpreter that lives on: variables, imports and functions last.

    python3 context.py OPTIONS

docs/protocols/runner-channel.md is the contract.  As in run.py, functions defined here keep the builtins that Python came
with; session.py has the rest, which zygote.py uses in a process forked from a warm one.
"""

import builtins
import sys

__builtins__ = dict(vars(builtins))

HERE = __file__.rpartition('/')[0] or '.'
FileLoader = sys.modules['_frozen_importlib_external'].SourceFileLoader
names = {'__builtins__': __builtins__, '__name__': 'runner', 'HERE': HERE, 'FileLoader': FileLoader}
exec(FileLoader('runner', HERE + '/runner.py').get_code('runner'), names)

if len(sys.argv) < 2:
    sys.stderr.write('usage: context.py OPTIONS\n')
    raise SystemExit(2)

main = sys.modules['__main__']
session = names['load_part']('session')['Session'](sys.argv[1])
session.open_channel(names['Channel']())
cold = names['find_cold']()
if cold is None:        # an interpreter that cannot load it: executions see frames of ours
    names['drive_here'](session.start())
cold.drive(session.start(), main)
raise KeyboardInterrupt     # which starts it, with no frame but an execution's
