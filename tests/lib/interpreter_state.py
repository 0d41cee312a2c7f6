"""A program that prints what it can find out about its interpreter: test_zygote.py compares two roads by it.

Left out is what preloading changes by its nature: sys.modules and the caches and finders of imports.
"""
import os
import subprocess
import sys


def since_begin(moment, begun=__import__('time').time()):
    return moment - begun


print('arguments', sys.argv, sys.orig_argv, sys.flags, sys.warnoptions, sys._xoptions, sys.path, sys.executable)
print('hooks', sys.excepthook, sys.displayhook, sys.unraisablehook, sys.breakpointhook, sys.path_hooks)
print('ours', [name for name in sys.path_importer_cache if not os.path.isdir(name) and 'python311.zip' not in name])
for stream in sys.stdin, sys.stdout, sys.stderr:
    raw = getattr(stream.buffer, 'raw', stream.buffer)
    print(stream, stream.encoding, stream.errors, stream.line_buffering, stream.write_through, stream.newlines,
          stream.buffer, raw, raw._blksize, raw.closefd, stream.isatty(), stream.mode, stream.name, stream.fileno(),
          stream is getattr(sys, '__%s__' % stream.name[1:-1]))
print('environment', list(os.environ.items()), os.environb, subprocess.check_output('env'))
print('limits', sys.getrecursionlimit(), sys.getswitchinterval(), sys.dont_write_bytecode, hasattr(sys, 'ps1'))


def depth(n=0):
    try:
        return depth(n + 1)
    except RecursionError:
        return n


print('depth', depth())

import builtins
import gc

print('gc', gc.isenabled(), gc.get_threshold(), gc.callbacks, gc.get_debug(), gc.garbage)
print('names', list(vars(builtins)), sorted(vars(sys)))
print('main', sys.modules['__main__'], list(globals().items()), __import__('__main__').__dict__ is globals())
print('loader', type(__loader__), __loader__.name, __loader__.path)

import locale
import resource
import signal
import site
import tempfile
import time

print('signals', [(number, signal.getsignal(number)) for number in signal.valid_signals()],
      signal.pthread_sigmask(signal.SIG_BLOCK, []))
print('place', locale.setlocale(locale.LC_ALL), time.tzname, time.timezone, time.localtime(0), time.daylight)
print('process', os.umask(0), os.getcwd(), os.getsid(0) == os.getpid(), os.sched_getaffinity(0), time.process_time() < 9,
      resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime < 1)
print('site', site.USER_SITE, site.USER_BASE, site.ENABLE_USER_SITE)
print('temporary', tempfile.tempdir, tempfile._name_sequence, tempfile.gettempdir())

import threading

main = threading.main_thread()
print('threads', threading.current_thread() is main, main.ident == threading.get_ident(), threading.active_count(),
      main.native_id == threading.get_native_id() == os.getpid(), main.name, threading.stack_size(),
      threading.Thread(target=int).name)

import asyncio
import concurrent.futures
import contextvars
import decimal
import linecache
import logging
import multiprocessing
import platform
import random
import uuid
import warnings

print('logging', logging.root.handlers, logging.root.level, logging.lastResort, since_begin(logging._startTime) > -2)
print('asyncio', asyncio.events._get_running_loop(), asyncio.get_event_loop_policy()._local.__dict__)
print('warnings', warnings.onceregistry, warnings.showwarning, globals().get('__warningregistry__'),
      [one for one in warnings.filters if one[2].__module__ == 'builtins' and not (one[1] and 'numpy' in one[1].pattern)])
print('linecache', linecache.cache)
print('multiprocessing', multiprocessing.current_process(), multiprocessing.get_start_method(),
      multiprocessing.process.ORIGINAL_DIR, multiprocessing.parent_process(), multiprocessing.active_children())
print('contexts', list(contextvars.copy_context().items()), decimal.getcontext())
print('random', random.getstate()[0], random._inst.gauss_next, uuid._node, uuid._last_timestamp)
print('platform', platform.node(), platform.python_version())
with concurrent.futures.ThreadPoolExecutor(1) as pool:
    print('pool', pool.submit(lambda: threading.current_thread().name).result())


async def task_name():
    return asyncio.current_task().get_name()


print('task', asyncio.run(task_name()))
print('tracing', sys.gettrace(), sys.getprofile(), sys.get_asyncgen_hooks(), sys.is_finalizing())
with open('/proc/self/comm', encoding='utf-8') as comm:
    print('comm', comm.read())
