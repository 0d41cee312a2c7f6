"""Answers of the HTTP interface, compared with its own description: every test that asks through Web holds /openapi.json."""

import functools
import http.client
import re
import urllib.parse

import jsonschema

# Of HTTP itself, or of libmicrohttpd.
FRAMING = {'date', 'content-length', 'transfer-encoding', 'connection', 'content-type', 'allow'}


class Description:
    def __init__(self, document):
        self.document = document
        literal_first = sorted(document['paths'], key=lambda path: [part.startswith('{') for part in path.split('/')])
        self.routes = [(re.compile(re.sub(r'\\{.*?\\}', '[^/]+', re.escape(path))), document['paths'][path]) for path in literal_first]

    def resolve(self, part):
        while '$ref' in part:
            name = part['$ref']
            part = self.document
            for word in name.removeprefix('#/').split('/'):
                part = part[word]
        return part

    def operation(self, method, target):
        """None: there is no such path, or the path has no such method."""
        path = urllib.parse.urlsplit(target).path
        for pattern, operations in self.routes:
            if pattern.fullmatch(path):
                return operations.get('get' if method == 'HEAD' else method.lower())
        return None

    @functools.cache
    def validator(self, operation_id, status, kind):
        operation = next(one for path in self.document['paths'].values() for one in path.values() if one['operationId'] == operation_id)
        schema = self.resolve(operation['responses'][status])['content'][kind]['schema']
        return jsonschema.Draft202012Validator({'components': self.document['components'], **schema})

    def check_head(self, method, target, status, headers):
        operation = self.operation(method, target)
        if not operation:
            return
        where = f'{method} {target}: {status}'
        assert str(status) in operation['responses'], f'{where} is not described'
        response = self.resolve(operation['responses'][str(status)])
        described = {name.lower(): self.resolve(one) for name, one in response.get('headers', {}).items()}
        given = {name.lower() for name in headers}
        assert not given - set(described) - FRAMING, f'{where} has headers that are not described'
        assert not {name for name, one in described.items() if one['required']} - given, f'{where} lacks headers'
        if status != 204 and 'content-type' in given and headers.get('Content-Length') != '0':
            assert headers.get_content_type() in response.get('content', {}), f'{where} has a body that is not described'

    def check_body(self, method, target, status, headers, body):
        operation = self.operation(method, target)
        if operation and status != 204:
            error = jsonschema.exceptions.best_match(self.validator(operation['operationId'], str(status), headers.get_content_type()).iter_errors(body))
            assert not error, f'{method} {target}: {status} is not as described: {error}'


class Connection(http.client.HTTPConnection):
    """Each answer's status, headers and media type are those of the description, which is not that of ports of sandboxes."""

    description = None
    asked = None

    def putrequest(self, method, url, *args, **more):
        self.asked = (method, url)
        super().putrequest(method, url, *args, **more)

    def putheader(self, header, *values):
        if header.lower() == 'e2b-sandbox-port':
            self.asked = None
        super().putheader(header, *values)

    def getresponse(self):
        answer = super().getresponse()
        if self.description and self.asked:
            self.description.check_head(*self.asked, answer.status, answer.headers)
        return answer
