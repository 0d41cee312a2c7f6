"""The documents that run.py sends: what is wrong with a text, what went wrong in a run, and the value of a run.

All of it looks at objects that a program made, after the program may have changed anything.  So it imports nothing,
asks type(x) and never x.__class__, and calls the methods of builtin types as functions: a subclass cannot
interfere.  The one thing of the program's that it calls is __repr__ (and __str__ of an exception), as late as possible.
Every text is built within a limit, because a small object can have an endless representation.
"""

import sys
from _thread import get_ident

DEPTH_MAX = 200                 # JSON readers refuse deep documents, and so do we
MESSAGE_MAX = 4000
LINE_MAX = 1000
LINES_MAX = 100
LINES_HEAD = 30
TRACEBACK_BYTES_MAX = 32000     # with the message it fits in one frame, however many characters need escapes
CAPTURE_MAX = 200000
PLACE = []                      # where a program has ended: its file, line and names
SHOWERS = 'matplotlib', 'PIL'   # they come between a program and what shows pictures
FUNCTION = type(lambda: None)
LET_THROUGH = ()                # exceptions that are for our caller; in a context somebody may interrupt a __repr__

type_name_of = type.__dict__['__name__'].__get__
type_module_of = type.__dict__['__module__'].__get__

ESCAPES = {code: '\\u%04x' % code for code in range(32)}
ESCAPES.update({ord('"'): '\\"', ord('\\'): '\\\\', 10: '\\n', 13: '\\r', 9: '\\t'})


class NotJson(Exception):
    pass


class Full(Exception):
    pass


def type_name(value):
    return str.__str__(type_name_of(type(value)))


def plain_text(text):
    """A str without lone surrogates, which UTF-8 has no bytes for."""
    return str.__str__(text).encode('utf-8', 'backslashreplace').decode()


def quote(text):
    return '"' + plain_text(text).translate(ESCAPES) + '"'


def quote_within(text, limit):
    """The longest beginning of text whose quoted form has at most limit bytes; returns that and whether it is all."""
    head = text[:limit]
    quoted = quote(head)
    size = len(quoted.encode())
    while size > limit + 2:
        head = head[:min(len(head) - 1, len(head) * limit // size)]
        quoted = quote(head)
        size = len(quoted.encode())
    return quoted, len(head) == len(text)


def quote_optional(value):
    """JSON for a number, a text or null."""
    if type(value) is int:
        return int.__repr__(value)
    return quote(value[:LINE_MAX]) if type(value) is str else 'null'


def document(**members):
    return ('{%s}' % ','.join('"%s":%s' % member for member in members.items())).encode()


class Text:
    """A text that grows up to a limit in bytes."""

    def __init__(self, limit):
        self.parts = []
        self.room = limit

    def put(self, text):
        self.parts.append(text)
        self.room -= len(text) if text.isascii() else len(text.encode('utf-8', 'backslashreplace'))
        if self.room < 0:
            raise Full

    def joined(self):
        return ''.join(self.parts)


def put_json(out, value, depth=0):
    kind = type(value)
    if value is None or value is True or value is False:
        out.put({None: 'null', True: 'true', False: 'false'}[value])
    elif issubclass(kind, str):
        put_json_string(out, value)
    elif issubclass(kind, int):
        if int.bit_length(value) > 4 * out.room + 64:
            raise NotJson
        out.put(int.__repr__(value))
    elif issubclass(kind, float):
        text = float.__repr__(value)
        if 'n' in text:         # nan, inf
            raise NotJson
        out.put(text)
    elif depth == DEPTH_MAX:
        raise NotJson
    elif issubclass(kind, (list, tuple)):
        put_json_items(out, '[]', (list if issubclass(kind, list) else tuple).__iter__(value), depth)
    elif issubclass(kind, dict):
        put_json_items(out, '{}', iter(dict.items(value)), depth)
    else:
        raise NotJson


def put_json_items(out, brackets, items, depth):
    out.put(brackets[0])
    for number, item in enumerate(items):
        if number:
            out.put(',')
        if brackets == '{}':
            key, item = item
            if not issubclass(type(key), str):
                raise NotJson
            put_json_string(out, key)
            out.put(':')
        put_json(out, item, depth + 1)
    out.put(brackets[1])


def put_json_string(out, value):
    # Cut before escaping, so that no copy is much larger than the room there is.
    text = str.__getitem__(value, slice(max(out.room, 0) + 1))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotJson from None
    out.put('"' + text.translate(ESCAPES) + '"')


# The builtin containers, with the __repr__ that says a subclass has none of its own.
CONTAINERS = ((list, '[', ']'), (tuple, '(', ')'), (dict, '{', '}'), (set, '{', '}'), (frozenset, 'frozenset({', '})'))


def put_repr(out, value, open_ids=()):
    """repr(value), but bounded: containers are walked here, since [[x, x], [x, x]]... doubles with every level."""
    kind = type(value)
    for container, before, after in CONTAINERS:
        if issubclass(kind, container) and kind.__repr__ is container.__repr__ and container.__len__(value):
            break
    else:
        out.put(repr_of_leaf(value, kind, max(out.room, 0) + 1))
        return
    if id(value) in open_ids or len(open_ids) == DEPTH_MAX:
        out.put(before + '...' + after)
        return
    open_ids += (id(value),)
    out.put(before)
    for number, item in enumerate(dict.items(value) if issubclass(container, dict) else container.__iter__(value)):
        if number:
            out.put(', ')
        if issubclass(container, dict):
            put_repr(out, item[0], open_ids)
            out.put(': ')
            item = item[1]
        put_repr(out, item, open_ids)
    out.put(',)' if container is tuple and tuple.__len__(value) == 1 else after)


def from_program(function, *arguments, **settings):
    """Call it as if the program did, at the line that led here, or at the end: a warning names whoever called."""
    frame = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename.rpartition('/')[0] == HERE or is_shower(frame.f_globals.get('__name__'))):
        frame = frame.f_back
    place = PLACE if frame is None else (frame.f_code.co_filename, frame.f_lineno, frame.f_globals)
    return call_by(function, *place, arguments, settings)() if place else function(*arguments, **settings)


def is_shower(module):
    return type(module) is str and module.partition('.')[0] in SHOWERS


def repr_of_leaf(value, kind, room):
    try:
        if kind in (str, bytes, bytearray):
            text = repr(value[:room])
        elif kind is int and int.bit_length(value) > 8000:
            # Decimal digits of such a number take long, and newer Pythons refuse to make them.
            text = hex(value) if int.bit_length(value) < 4 * room else '<int of %d bits>' % int.bit_length(value)
        else:
            text = from_program(repr, value) if type(type.__getattribute__(kind, '__repr__')) is FUNCTION else repr(value)
        return plain_text(str.__getitem__(text, slice(room)))
    except BaseException as broken:
        if issubclass(type(broken), LET_THROUGH):
            raise
        return '<%s object; its __repr__ raised %s>' % (type_name(value), type_name(broken))


def value_document(value, value_max):
    return document(**value_members(value, value_max))


def value_members(value, value_max):
    """{"type", "value"}, or {"type", "repr"} for what JSON cannot express, with "truncated" if over value_max bytes."""
    kind = quote(type_name(value)[:LINE_MAX])
    out = Text(value_max)
    try:
        put_json(out, value)
        return {'type': kind, 'value': out.joined()}
    except Full:
        text, is_all = quote_within(plain_text(out.joined()), value_max)[0], False
    except Exception:           # not JSON, too deep, or changed by a thread as we read it
        text, is_all = repr_within(value, value_max)
    return {'type': kind, 'repr': text} if is_all else {'type': kind, 'repr': text, 'truncated': 'true'}


def repr_within(value, limit):
    """The beginning of repr(value) as JSON of at most limit bytes, and whether that is all of it."""
    out = Text(limit)
    try:
        put_repr(out, value)
    except Full:
        pass
    except Exception as broken:
        out.parts.append('<repr() raised %s>' % type_name(broken))
    text, is_all = quote_within(plain_text(out.joined()), limit)
    return text, is_all and out.room >= 0


def source_line(source, number):
    lines = source.split(b'\n', number)
    return lines[number - 1] if 0 < number <= len(lines) else b''


def column_in_characters(error, source):
    """Some versions count the column of an error in bytes when the text is given as bytes, as it was."""
    if error.text is None or error.text.isascii():
        return error.offset
    try:
        compile(source.decode('utf-8-sig'), error.filename, 'exec', 0, True)
    except SyntaxError as same:
        return same.offset
    except Exception:           # another encoding
        pass
    return error.offset


def syntax_document(error, source):
    """Also for what is no SyntaxError: compile() raises ValueError for NUL bytes, MemoryError for deep nesting."""
    message = str(error) or 'the text is too deep or too long for the parser'
    line = column = text = None
    if issubclass(type(error), SyntaxError):
        message = error.msg
        line = error.lineno
        column = column_in_characters(error, source)
        text = error.text
    if not line and b'\0' in source:
        line = source.count(b'\n', 0, source.index(b'\0')) + 1
    elif not line:
        try:
            source.decode()
        except UnicodeDecodeError as undecodable:
            line = source.count(b'\n', 0, undecodable.start) + 1
    line = line if type(line) is int and line > 0 else None
    column = column if line and type(column) is int and column > 0 else None
    if text is None and line:
        text = source_line(source, line).decode('utf-8', 'replace')
    text = text.strip('\r\n') if text else None
    return document(type=quote(type_name(error)), message=quote(message[:MESSAGE_MAX]), line=quote_optional(line),
                    column=quote_optional(column), text=quote_optional(text))


class Capture:
    """Stands in for sys.stderr while the interpreter prints a traceback; other threads still reach the real one."""

    def __init__(self, stderr):
        self.stderr = stderr
        self.thread = get_ident()
        self.head = ''
        self.tail = ''

    def write(self, text):
        if get_ident() != self.thread:
            return self.stderr.write(text)
        room = CAPTURE_MAX - len(self.head)
        self.head += text[:room]
        self.tail = (self.tail + text[room:][-CAPTURE_MAX:])[-CAPTURE_MAX:]
        return len(text)

    def flush(self):
        pass


def traceback_lines(error, trace, print_traceback):
    """The lines that Python prints.  Its own printer makes them: the traceback module may be the program's own."""
    capture = Capture(sys.stderr)
    sys.stderr = capture
    try:
        print_traceback(type(error), error, trace)
    finally:
        sys.stderr = capture.stderr
    lines = (capture.head + capture.tail).rstrip('\n').split('\n')
    if len(lines) > LINES_MAX:
        omitted = len(lines) - LINES_MAX + 1
        lines[LINES_HEAD:LINES_HEAD + omitted] = ['  ... %d lines omitted' % omitted]
    quoted = [quote(line[:LINE_MAX]) for line in lines]
    while len(quoted) > 1 and sum(len(line.encode()) for line in quoted) > TRACEBACK_BYTES_MAX:
        del quoted[len(quoted) // 2]
    return quoted


def position_in(trace, path, source):
    """Line and column, both from 1, of the innermost frame in the program's main file."""
    found = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            found = trace
        trace = trace.tb_next
    if found is None or not found.tb_lineno:
        return None, None
    code = found.tb_frame.f_code
    if not hasattr(code, 'co_positions'):       # before Python 3.11
        return found.tb_lineno, None
    for index, (line, _, column, _) in enumerate(code.co_positions()):
        if index == found.tb_lasti // 2 and line == found.tb_lineno and column is not None:
            return line, len(source_line(source, line)[:column].decode('utf-8', 'replace')) + 1
    return found.tb_lineno, None


def text_of(error):
    try:
        return str.__getitem__(str(error), slice(MESSAGE_MAX))
    except BaseException:
        return '<exception str() failed>'


def asserted(error, source, line):
    """The text of a bare assert, which is all that it says; '' for everything else that has no text."""
    text = source_line(source, line).decode('utf-8', 'replace').strip() if line else ''
    return text[:LINE_MAX] if type(error) is AssertionError and text.startswith('assert') else ''


def missing_name(error, message):
    """The module or variable that was not there."""
    if not issubclass(type(error), (ImportError, NameError)):
        return None
    name = getattr(error, 'name', None)
    if name is None and issubclass(type(error), NameError) and message.count("'") == 2:
        name = message.split("'")[1]            # before Python 3.10
    return name


def guarded(function, *arguments):
    try:
        return function(*arguments)
    except BaseException:
        return None


def error_document(error, trace, path, source, print_traceback):
    message = text_of(error)
    line, column = guarded(position_in, trace, path, source) or (None, None)
    message = message or guarded(asserted, error, source, line) or ''
    module = guarded(type_module_of, type(error))
    errno = guarded(OSError.errno.__get__, error) if issubclass(type(error), OSError) else None
    lines = guarded(traceback_lines, error, trace, print_traceback) or ()
    return document(type=quote(type_name(error)[:LINE_MAX]), message=quote(message), line=quote_optional(line),
                    column=quote_optional(column), module=quote_optional(module), errno=quote_optional(errno),
                    name=quote_optional(guarded(missing_name, error, message)),
                    traceback='[%s]' % ','.join(lines))


def prelude_document(error, trace, path, source, print_traceback):
    """Of the prelude, which ended before the program began; without a trace it could not be compiled."""
    told = syntax_document(error, source) if trace is None else error_document(error, trace, path, source, print_traceback)
    return told[:-1] + b',"prelude":true}'
