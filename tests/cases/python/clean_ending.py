#: what: exit handlers, context managers, a finalised object and SystemExit with status 0, in their order
#: stdout: body, inner closed, finalised, finally, atexit
import atexit
import contextlib
import sys
import weakref

events = ["body"]


class Resource:
    pass


@contextlib.contextmanager
def opened(name):
    try:
        yield name
    finally:
        events.append(f"{name} closed")


@atexit.register
def report():
    events.append("atexit")
    print(", ".join(events))


resource = Resource()
weakref.finalize(resource, events.append, "finalised")
try:
    with contextlib.suppress(KeyError), opened("inner"):
        print({}["missing"])
    del resource
    sys.exit(0)
finally:
    events.append("finally")
