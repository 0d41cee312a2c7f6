"""A case with standard input: the submission is the main program of the case's process, and its output is the answer.

The role `cases` has compiled the submission and executed the set-up; each fork executes the submission (cases.py).
"""

import sys
from binascii import a2b_base64, b2a_base64
from _thread import _count as count_threads
from posix import (WEXITSTATUS, WIFSIGNALED, WTERMSIG, _exit, close, dup2, fstat, getpid, lseek, memfd_create,
                   pread, write)
from _signal import SIGXCPU

KEEP_MAX = 16 << 20             # bytes of an output in one message
MESSAGE_LENGTH_SIZE = 8
MFD_CLOEXEC = 1
set_trace, set_profile = sys.settrace, sys.setprofile
modules = sys.modules


def read_case(case, document):
    """Take the members of a case with standard input."""
    text = document.get('stdin')
    case.stdin = a2b_base64(document['stdin_base64']) if text is None else text.encode('utf-8', 'surrogatepass')
    case.keep = min(document.get('keep', 0), KEEP_MAX)


def become_main(runner):
    """Let the module of the submission be the main program."""
    runner.names.update(__name__='__main__', __package__=None, __spec__=None)
    modules.pop(SUBMISSION, None)


def feed(data):
    """Put data at the beginning of standard input."""
    fd = memfd_create('stdin', MFD_CLOEXEC)
    left = memoryview(data)
    while left:
        left = left[write(fd, left):]
    lseek(fd, 0, 0)
    dup2(fd, 0)
    close(fd)


class ProgramEnd:
    """The end of a program: the error that it raised, or None."""

    def __init__(self, error):
        self.error = error

    def tell(self, grader, writer):
        """Write a message about an error to writer; then end this process as the interpreter ends."""
        runner, error = grader.runner, self.error
        if error is not None and not issubclass(type(error), SystemExit):
            text = grader.error_text(error)
            message = len(text).to_bytes(MESSAGE_LENGTH_SIZE, 'little') + text
            while message:
                message = message[write(writer, message):]
        close(writer)
        self.error = None
        ending = None if error is None else drive_here(runner.ending_of(error))
        error = None
        if runner.leave is not None:
            ending = drive_here(runner.leave.end(ending, (None, None)))      # does not return without threads
        return finish(ending)


def finish(ending):
    """Wait for threads, run exit handlers and flush, for a process that goes on or leaves by itself.  Returns the exit status."""
    end = load_part('finalize')
    if count_threads() and 'threading' in modules:
        try:
            modules['threading']._shutdown()
        except BaseException:
            pass
    end['run_exit_functions']()
    kept = end['flush_streams']()
    if type(ending) is KeyboardInterrupt:
        return 130
    status = 0 if ending is None else end['exit_code'](ending.code)
    return status if kept else end['BROKEN_OUTPUT_EXIT']


def execute(grader):
    """Execute the submission in its names.  Returns its error, or None."""
    code, last = grader.program
    try:
        exec(code, grader.runner.names)
        if last is not None:
            eval(last, grader.runner.names)
        return None
    except BaseException as error:
        drop_own_frame(error)
        return error
    finally:
        set_trace(None)
        set_profile(None)


def run_program(grader, case):
    """In the process of a case: run the submission.  Returns its ProgramEnd."""
    pid = getpid()
    feed(case.stdin)
    generator = getattr(modules.get('random'), '_inst', None)
    if generator is not None and b'random' in grader.runner.source:
        generator.seed()        # the state is that of the process that was forked
    end = ProgramEnd(execute(grader))
    if getpid() != pid:         # the program has forked
        status = 1
        try:
            status = end.tell(grader, memfd_create('nobody', MFD_CLOEXEC))
        finally:
            _exit(status)
    return end


def tell_end(grader, case, message, status, reason, cpu, wall, memory, outputs):
    """Tell the engine how the process of a case ended.  False: the engine is gone."""
    if reason == 'gone':
        return False
    if reason is None and WIFSIGNALED(status) and WTERMSIG(status) == SIGXCPU:
        reason = 'cpu'
    members, signs = error_of(grader, message)
    if reason is not None:
        how = {'how': 'timeout', 'by': reason}
    elif WIFSIGNALED(status):
        how = {'how': 'signalled', 'signal': WTERMSIG(status)}
    else:
        how = {'how': 'exited', 'exit_code': WEXITSTATUS(status), **members}
    size = fstat(outputs[0]).st_size
    return tell_output(grader, case, how, signs, cpu, wall, memory, pread(outputs[0], min(size, case.keep), 0), size,
                       grader.read_error(outputs[1]))


def tell_output(grader, case, how, signs, cpu, wall, memory, output, size, error):
    try:
        written = {'output': output.decode('utf-8')}
    except UnicodeDecodeError:
        written = {'output_base64': b2a_base64(output, newline=False).decode('ascii')}
    grader.send(op='result', i=case.index, **how, **written, output_bytes=size, cpu_ms=round(cpu * 1000, 3),
                wall_ms=round(wall * 1000, 3), memory=memory, stdout='', stderr=error, signs=signs)
    return True


def tell_record(grader, case, members, signs, cpu, wall, memory, fd, begin, end, error):
    """Tell the engine of a program that ended in the shared process, with its part of the output."""
    how = {'how': 'exited', 'exit_code': 1, 'error': members} if members.pop('how') == 'raised' else {'how': 'exited', **members}
    tell_output(grader, case, how, signs, cpu, wall, memory, pread(fd, min(end - begin, case.keep), begin), end - begin, error)


def error_of(grader, message):
    """The members type, message and line of the error that a process told of; and signs."""
    if not message:
        return {}, []
    members, signs = grader.read_text(message[MESSAGE_LENGTH_SIZE:])
    if members is None or members.pop('how') != 'raised':
        return {}, signs
    return {'error': members}, signs
