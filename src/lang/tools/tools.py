"""What code in a sandbox may call outside: tools.weather(city='Oslo').

This is a stub.  It knows the path of a socket and nothing else; what may be called, by whom and how often is decided at the
other end (src/tools of the engine).  Each call is a connection of its own, so threads and forked processes share nothing.
"""

import sys
from _socket import AF_UNIX, SOCK_CLOEXEC, SOCK_STREAM, socket
from json import dumps, loads
from os import environ

HEAD = 4
READ_SIZE = 1 << 16


class ToolError(Exception):
    """A call that failed, where the request said that it is to be an exception."""

    def __init__(self, message, tool=''):
        super().__init__(message)
        self.tool = tool


def receive(connection, size):
    """So many bytes, or fewer where there are no more."""
    pieces, left = [], size
    while left:
        piece = connection.recv(min(left, READ_SIZE))
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return b''.join(pieces)


def named(answer, request):
    """A failure names the tool that was asked for, even where the request could not be read at the other end."""
    return answer if answer.get('ok') or answer.get('tool') else {**answer, 'tool': request.get('tool', '')}


def ask(request):
    """The answer to a request, a dict; one that could not be asked gets the answer of a failure."""
    text = dumps(request, ensure_ascii=False, allow_nan=False, separators=(',', ':')).encode('utf-8', 'surrogatepass')
    connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
    problem = 'the connection was ended'
    try:
        connection.connect(environ.get('CAISSON_TOOLS') or '/dev/shm/.caisson-tools')
        try:
            connection.sendall(len(text).to_bytes(HEAD, 'little') + text)
        except OSError:
            pass            # what was refused by its length has an answer all the same
        head = receive(connection, HEAD)
        size = int.from_bytes(head, 'little')
        answer = receive(connection, size) if len(head) == HEAD else b''
        if len(head) == HEAD and len(answer) == size:
            return named(loads(answer), request)
    except OSError as error:
        problem = error.strerror or str(error)
    finally:
        connection.close()
    return {'ok': False, 'error': 'Tools cannot be reached: %s' % problem, 'tool': request.get('tool', '')}


def failure(answer):
    return {'status': 'error', 'error': answer['error'], 'tool': answer.get('tool', '')}


def result_of(answer):
    if not answer.get('ok') and answer.get('raise'):
        raise ToolError(answer['error'], answer.get('tool', ''))
    return answer['result'] if answer.get('ok') else failure(answer)


def call(server, name, arguments):
    request = {'op': 'call', 'tool': name, 'arguments': arguments}
    if server is not None:
        request['server'] = server
    answer = ask(request)
    result = result_of(answer)
    return result if answer.get('decode') else dumps(result, ensure_ascii=False)


def listed():
    answer = ask({'op': 'list'})
    return answer['tools'] if answer.get('ok') else []


def as_identifier(name):
    return ''.join(letter if letter.isalnum() else '_' for letter in name)


def refuse_private(name):
    if name.startswith('_'):
        raise AttributeError('%r is no tool: names that begin with _ are refused' % name)


class Tool:
    """A tool, or a server whose tools are its attributes; which of them, its use tells."""

    __slots__ = '_server', '_name'

    def __init__(self, server, name):
        self._server = server
        self._name = name

    def __call__(self, *given, **arguments):
        if len(given) > 1 or (given and not isinstance(given[0], dict)):
            raise TypeError('a tool takes its arguments by name: tools.%s(name=value)' % self._name)
        return call(*self._exact(), {**given[0], **arguments} if given else arguments)

    def __getattr__(self, name):
        refuse_private(name)
        return Tool(self._name, name)

    def __repr__(self):
        return '<tool %s%s>' % (self._server + '.' if self._server else '', self._name)

    def _exact(self):
        """The name as its server has it: what Python writes get_time may be get-time there."""
        if '_' in self._name or (self._server and '_' in self._server):
            tools = [one for one in listed() if self._server is None or as_identifier(one['server']) == as_identifier(self._server)]
            exact = [one for one in tools if one['tool'] == self._name]
            alike = [one for one in tools if as_identifier(one['tool']) == as_identifier(self._name)]
            if not exact and len(alike) == 1:
                return alike[0]['server'], alike[0]['tool']
            if self._server is not None and len(exact) == 1:
                return exact[0]['server'], exact[0]['tool']
        return self._server, self._name


class Tools:
    """tools.NAME(...), tools.SERVER.NAME(...), tools.call(NAME, ...), tools.list_tools(), tools.get_tool_info(NAME)."""

    ToolError = ToolError
    __name__ = __name__
    __file__ = __file__
    __spec__ = __spec__
    __path__ = ()

    def __getattr__(self, name):
        refuse_private(name)
        return Tool(None, name)

    def call(self, *names, **arguments):
        """call('weather', city='Oslo'), call('home', 'weather', city='Oslo') or call(server='home', tool='weather', city='Oslo')."""
        if names and isinstance(names[-1], dict):
            arguments = {**names[-1], **arguments}
            names = names[:-1]
        if not names:
            names = arguments.pop('server', None), arguments.pop('tool', None)
        server, name = names if len(names) == 2 else (None, *names) if len(names) == 1 else (None, None)
        if not isinstance(name, str) or not isinstance(server, (str, type(None))):
            raise TypeError("call('NAME', name=value) or call(server='SERVER', tool='NAME', name=value)")
        return call(server, name, arguments)

    def list_tools(self):
        return sorted(one['name'] for one in listed())

    def get_tool_info(self, name):
        return result_of(ask({'op': 'info', 'tool': name}))

    def __dir__(self):
        return sorted({'call', 'list_tools', 'get_tool_info', 'ToolError', *(as_identifier(one['tool']) for one in listed())})

    def __repr__(self):
        names = self.list_tools()
        return '<tools: %d: %s%s>' % (len(names), ', '.join(names[:5]), ', ...' if len(names) > 5 else '')


sys.modules[__name__] = Tools()
