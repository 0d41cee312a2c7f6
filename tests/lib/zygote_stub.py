"""Stands in for the C side of the Python zygote: the same, but without a sandbox.

test_zygote.py copies it beside the runners as _caisson.py, and the real one into a folder there, of which this takes what has
to do with neither.  Descriptor 3 of the zygote is a socket to the test, which
sends one packet for each process that it wants and another, straight to that process, with its program.  With
CAISSON_STUB_NAMESPACE in the environment each process is the first of a process namespace, as the zygote may be.
"""

import marshal
import os
import socket
import sys

import _ctypes

NAMESPACE = os.environ.pop('CAISSON_STUB_NAMESPACE', None)
SYSCALL = _ctypes.dlsym(_ctypes.dlopen(None, os.RTLD_LAZY), 'syscall')
CLONE_NEWPID = 0x20000000

arguments = sys.argv[2:]
control = None
program = None
usual = None

stub = sys.modules['_caisson']
real = sys.modules['_frozen_importlib_external'].ExtensionFileLoader(
    '_caisson', os.path.dirname(os.path.abspath(__file__)) + '/real/_caisson.abi3.so')
real = real.create_module(sys.modules['_frozen_importlib'].ModuleSpec('_caisson', real, origin=real.path))
sys.modules['_caisson'] = stub
globals().update({name: getattr(real, name) for name in (
    'CHANNEL', '__import__', '_gcd_import', 'ahead', 'set_gcd_import', 'begin', 'begin_room', 'end', 'fill_room', 'fork', 'have_ends', 'is_plain', 'is_usual_stream', 'leave', 'logging_shutdown', 'quit', 'renew', 'drive', 'run_cases',
    'send_frame', 'share_constants', 'split_last', 'start', 'strangers', 'usual')})


def forget_text():
    pass


def serve(info, *lists):
    global control, usual
    usual = lists[:2]
    assert bool(lists[2:]) == (len(arguments) > 1 and arguments[0] != '0')
    control = socket.socket(fileno=3)
    control.send(info)
    while True:
        words, descriptors, _, _ = socket.recv_fds(control, 65536, 4)
        if not words:
            os._exit(0)
        pid = fork()
        if pid == 0:
            if NAMESPACE:
                enter_namespace()
            return become_run(os.fsdecode(words), descriptors)
        for fd in descriptors:
            os.close(fd)
        control.send(b'%d' % pid)
        control.send(b'%d' % os.waitpid(pid, 0)[1])


def enter_namespace():
    """Only children are in the new namespace; so we become one, and who was forked for it waits."""
    _ctypes.call_function(_ctypes.dlsym(_ctypes.dlopen(None, os.RTLD_LAZY), 'unshare'), (CLONE_NEWPID,))
    pid = fork()
    if pid:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 0xff)


def become_run(folder, descriptors):
    """descriptors: standard output and error, the way to the test, and the channel unless there is none."""
    global control, program
    os.setsid()
    control.close()
    control = None          # or there would be something to take down at the end of each run
    os.chdir(folder)
    program = socket.socket(fileno=os.dup2(descriptors[2], 50, inheritable=False))
    stdin = os.open(os.devnull, os.O_RDONLY)
    for number, fd in enumerate([stdin, *descriptors[:2], *descriptors[3:]]):
        os.dup2(fd, number)
    for fd in {stdin, *descriptors} - {0, 1, 2, 3, 50}:
        os.close(fd)


def wait():
    global program
    program.send(b'ready')
    words, descriptors, _, _ = socket.recv_fds(program, 1 << 20, 1)
    program.close()
    program = None
    os.dup2(descriptors[0], 0)
    os.close(descriptors[0])
    return *(known if known == given else given for known, given in zip(usual, marshal.loads(words))), only_file()


def only_file():
    names = os.listdir(b'.')
    if len(names) != 1:
        return None
    with open(names[0], 'rb') as file:
        return names[0], file.read()
