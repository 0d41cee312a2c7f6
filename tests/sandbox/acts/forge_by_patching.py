#: act: replace what a reporter could use, so that a failure looks like success
#: status: failed
#: exit: 1
#: host-check: error_type ZeroDivisionError
import builtins
import json
import os
import sys
import traceback

for module, names in ((json, ("dumps", "dump")), (traceback, ("format_exception", "TracebackException", "extract_tb")),
                      (os, ("write", "_exit", "getpid")), (builtins, ("isinstance", "type", "repr", "str", "len", "open", "print")),
                      (sys, ("exc_info", "_getframe", "exit"))):
    for name in names:
        setattr(module, name, lambda *_, **__: 0)
sys.excepthook = lambda *_: None
sys.modules.clear()
1 / 0
