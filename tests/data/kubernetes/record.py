#!/usr/bin/python3
"""Record exchanges with a Kubernetes API server: the truth from a real one, and what a stand-in answers to compare.

    record.py OUT.jsonl HOST:PORT CA TOKEN

essence() is the part of an exchange in which two servers must agree.

Each line of the transcript is one exchange: name, request, status, headers and response; the response of a watch is
the list of its events.  What differs from one recording to the next has a label: <uid 1>, <revision 3>, <time>,
g-<suffix>, <continue>.  Labels are numbered by their first appearance, so equal labels stand for equal values.
managedFields are left out.  The server needs a token of an administrator and no namespace `gold`.
transcript.jsonl is of kube-apiserver 1.20.2.
"""

import http.client
import json
import re
import ssl
import sys
import time

MERGE, STRATEGIC = 'application/merge-patch+json', 'application/strategic-merge-patch+json'
JSON, JSON_PATCH = 'application/json', 'application/json-patch+json'
HEADERS = ('content-type', 'warning', 'retry-after', 'www-authenticate', 'transfer-encoding')
NAMESPACE = '/api/v1/namespaces/gold'
PODS, LEASES = f'{NAMESPACE}/pods', '/apis/coordination.k8s.io/v1/namespaces/gold/leases'
NO_UID = '00000000-0000-0000-0000-000000000000'
UID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')
TIME = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z')
LISTS = ('labelSelector=app%3Dw', 'labelSelector=app+in+(w,z),pool', 'labelSelector=app!%3Dw', 'labelSelector=!pool',
         'fieldSelector=metadata.name%3Dw-0', 'fieldSelector=status.phase%3DRunning',
         'fieldSelector=spec.nodeName%3Dnone', 'limit=1', 'resourceVersion=0')
WATCH = f'{PODS}?watch=1&timeoutSeconds=1'


class Labels:
    """The labels of random values, for one transcript."""

    def __init__(self):
        self.seen = {}

    def label(self, kind, value):
        known = self.seen.setdefault(kind, {})
        return f'<{kind} {known.setdefault(value, len(known) + 1)}>'

    def text(self, text):
        text = UID.sub(lambda match: match[0] if match[0] == NO_UID else self.label('uid', match[0]), text)
        text = TIME.sub('<time>', text)
        text = re.sub(r'(too old resource version: \d+) \(\d+\)', r'\1 (<oldest>)', text)
        text = re.sub(r'(ResourceVersion in record) \(\d+\)', r'\1 (<revision>)', text)
        text = re.sub(r'\bg-[a-z0-9]{5}\b', 'g-<suffix>', text)
        text = re.sub(r'(resourceVersion=)(\d{2,8})\b', lambda match: match[1] + self.label('revision', match[2]), text)
        return re.sub(r'(continue=)[A-Za-z0-9_=-]{10,}', r'\1<continue>', text)

    def value(self, value, name=''):
        if isinstance(value, dict):
            return {key: self.value(part, key) for key, part in value.items() if key != 'managedFields'}
        if isinstance(value, list):
            return [self.value(part, name) for part in value]
        if name == 'resourceVersion' and value:
            return self.label('revision', value)
        if name == 'continue' and value:
            return '<continue>'
        return self.text(value) if isinstance(value, str) else value


class Recorder:
    """connect() makes a client of http.client; found(exchange) gets each exchange.

    settle: seconds until the admission of a real server has learnt, by a watch, of a new namespace or quota.
    """

    def __init__(self, connect, token, found, settle=2):
        self.connect, self.token, self.found, self.settle, self.labels = connect, token, found, settle, Labels()

    def ask(self, name, method, path, body=None, content_type=JSON, is_watch=False, token=''):
        """(status, response); token=None asks as nobody."""
        client = self.connect()
        token = self.token if token == '' else token
        headers = {'Accept': JSON, **({'Authorization': f'Bearer {token}'} if token else {}),
                   **({'Content-Type': content_type} if body is not None else {})}
        client.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = client.getresponse()
        text = answer.read()
        client.close()
        if is_watch:
            response = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            try:
                response = json.loads(text)
            except ValueError:
                response = text.decode(errors='replace')
        kept = {key.lower(): value for key, value in answer.getheaders() if key.lower() in HEADERS}
        request = {'method': method, 'path': path, 'contentType': content_type if body is not None else None,
                   'body': body}
        self.found({'name': name, 'request': self.labels.value({**request, 'path': self.labels.text(path)}),
                    'status': answer.status, 'headers': self.labels.value(kept),
                    'response': self.labels.value(response)})
        return answer.status, response

    def all(self):
        self.ask('namespace create', 'POST', '/api/v1/namespaces',
                 {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'gold'}})
        time.sleep(self.settle)
        _, empty = self.ask('list empty', 'GET', f'{PODS}?labelSelector=app%3Dw')
        first = empty['metadata']['resourceVersion']
        self.creates()
        _, made = self.ask('get', 'GET', f'{PODS}/w-0')
        self.ask('get 404', 'GET', f'{PODS}/nope')
        self.lists()
        self.patches(made)
        self.watches(first)
        self.deletes(first)
        self.leases()
        self.more()
        self.ask('no token: 403 anonymous', 'GET', PODS, token=None)
        self.ask('bad token: 401', 'GET', PODS, token='nope')
        self.ask('quota create', 'POST', f'{NAMESPACE}/resourcequotas',
                 {'apiVersion': 'v1', 'kind': 'ResourceQuota', 'metadata': {'name': 'q'},
                  'spec': {'hard': {'pods': '1'}}})
        # No controller of quotas runs, so the recorder writes the status that admission trusts.
        self.ask('quota status, as its controller writes it', 'PATCH', f'{NAMESPACE}/resourcequotas/q/status',
                 {'status': {'hard': {'pods': '1'}, 'used': {'pods': '1'}}}, MERGE)
        time.sleep(self.settle)
        self.ask('create over quota: 403', 'POST', PODS, pod('w-1'))
        self.ask('pods deletecollection', 'DELETE', f'{PODS}?labelSelector=app%3Dw&gracePeriodSeconds=0')
        self.ask('version', 'GET', '/version')
        self.ask('namespace delete', 'DELETE', NAMESPACE)

    def creates(self):
        self.ask('create', 'POST', PODS, pod('w-0'))
        self.ask('create again: 409 AlreadyExists', 'POST', PODS, pod('w-0'))
        head = {'apiVersion': 'v1', 'kind': 'Pod'}
        self.ask('create invalid: 422', 'POST', PODS, {**head, 'metadata': {'name': 'Bad_Name'},
                                                       'spec': {'containers': []}})
        self.ask('create bad json type: 400', 'POST', PODS,
                 {**head, 'metadata': {'name': 'x'}, 'spec': {'containers': 'no'}})
        self.ask('create unknown field, strict: 400', 'POST', f'{PODS}?fieldValidation=Strict',
                 {**pod('w-9'), 'bogus': 1})
        self.ask('create unknown field, warn', 'POST', f'{PODS}?fieldValidation=Warn&dryRun=All',
                 {**pod('w-9'), 'bogus': 1})
        generated = {**pod(''), 'metadata': {'generateName': 'g-', 'labels': {'app': 'w'}}}
        self.ask('generateName', 'POST', PODS, generated)

    def lists(self):
        for query in LISTS:
            self.ask(f'list {query}', 'GET', f'{PODS}?{query}')
        _, page = self.ask('list page 1', 'GET', f'{PODS}?limit=1')
        self.ask('list page 2', 'GET', f'{PODS}?limit=1&continue={page["metadata"].get("continue", "")}')
        self.ask('bad selector: 400', 'GET', f'{PODS}?labelSelector=%3D%3D%3D')
        self.ask('bad continue: 410/400', 'GET', f'{PODS}?limit=1&continue=xyz')

    def patches(self, made):
        def patch(name, body, how):
            self.ask(name, 'PATCH', f'{PODS}/w-0', body, how)

        container = {'name': 'c', 'image': 'x', 'imageID': 'x', 'ready': True, 'restartCount': 0,
                     'state': {'running': {}}}
        status = {'phase': 'Running', 'podIP': '127.0.0.9', 'podIPs': [{'ip': '127.0.0.9'}],
                  'conditions': [{'type': 'Ready', 'status': 'True'}], 'containerStatuses': [container]}
        self.ask('patch status strategic', 'PATCH', f'{PODS}/w-0/status', {'status': status}, STRATEGIC)
        patch('patch metadata merge', {'metadata': {'annotations': {'a': '1'}, 'labels': {'pool': None, 'x': 'y'}}},
              MERGE)
        old = made['metadata']['resourceVersion']
        patch('patch with old resourceVersion: 409', {'metadata': {'resourceVersion': old, 'annotations': {'a': '2'}}},
              MERGE)
        patch('patch with wrong uid: 409', {'metadata': {'uid': NO_UID, 'annotations': {'a': '2'}}}, MERGE)
        patch('patch spec of a pod: 422', {'spec': {'hostUsers': False}}, MERGE)
        patch('json patch', [{'op': 'test', 'path': '/metadata/labels/x', 'value': 'y'},
                             {'op': 'add', 'path': '/metadata/labels/z', 'value': '1'}], JSON_PATCH)
        patch('json patch, failed test: 422', [{'op': 'test', 'path': '/metadata/labels/x', 'value': 'no'}], JSON_PATCH)
        patch('wrong patch type: 415', {}, JSON)

    def watches(self, first):
        self.ask('watch from rv (1 s)', 'GET',
                 f'{WATCH}&labelSelector=app%3Dw&resourceVersion={first}&allowWatchBookmarks=true',
                 is_watch=True)
        self.ask('watch without rv: synthetic ADDED', 'GET', WATCH, is_watch=True)
        self.ask('watch sendInitialEvents', 'GET',
                 f'{WATCH}&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan',
                 is_watch=True)
        self.ask('watch too old: ERROR 410', 'GET', '/api/v1/pods?watch=1&resourceVersion=1&timeoutSeconds=1',
                 is_watch=True)
        self.ask('watch rv in the future', 'GET', f'{PODS}?watch=1&resourceVersion=999999999&timeoutSeconds=1')

    def deletes(self, first):
        def delete(name, query='', **options):
            body = {'kind': 'DeleteOptions', 'apiVersion': 'v1', **options} if options else None
            self.ask(name, 'DELETE', f'{PODS}/w-0{query}', body)

        self.ask('get after the patches', 'GET', f'{PODS}/w-0')
        _, made = self.ask('get before delete', 'GET', f'{PODS}/w-0')
        delete('delete wrong uid: 409', preconditions={'uid': NO_UID})
        delete('delete graceful (deletionTimestamp set)', gracePeriodSeconds=30,
               preconditions={'uid': made['metadata']['uid']})
        delete('delete again')
        delete('delete force', '?gracePeriodSeconds=0')
        delete('delete gone: 404')
        self.ask('watch after the deletes', 'GET',
                 f'{WATCH}&labelSelector=app%3Dw&resourceVersion={first}', is_watch=True)

    def leases(self):
        _, made = self.ask('lease create', 'POST', LEASES, {
            'apiVersion': 'coordination.k8s.io/v1', 'kind': 'Lease', 'metadata': {'name': 'l'},
            'spec': {'holderIdentity': 'a', 'leaseDurationSeconds': 15}})
        _, made = self.ask('lease get', 'GET', f'{LEASES}/l')
        made['spec']['holderIdentity'] = 'b'
        self.ask('lease update', 'PUT', f'{LEASES}/l', made)
        self.ask('lease update, old rv: 409', 'PUT', f'{LEASES}/l', made)

    def more(self):
        """What the exchanges before leave open."""
        self.ask('create without kind', 'POST', PODS, {name: part for name, part in pod('k-0').items()
                                                       if name != 'kind'})
        self.ask('create of another kind: 400', 'POST', PODS, {**pod('k-1'), 'kind': 'Lease'})
        self.ask('create in no namespace: 404', 'POST', PODS.replace('gold', 'none'), pod('k-1'))
        self.ask('create for another namespace: 400', 'POST', PODS,
                 {**pod('k-1'), 'metadata': {'name': 'k-1', 'namespace': 'x'}})
        self.ask('bad field selector: 400', 'GET', f'{PODS}?fieldSelector=spec.image%3Dx')
        self.ask('list rv in the future: 504', 'GET', f'{PODS}?resourceVersion=999999999&timeoutSeconds=1')
        self.ask('no such path: 404', 'GET', '/api/v1/nothing')
        _, empty = self.ask('list before more', 'GET', f'{PODS}?limit=1')
        free = pod('n-0')
        del free['spec']['nodeName']
        _, made = self.ask('create without a node', 'POST', PODS, free)
        self.ask('delete without a node: gone at once', 'DELETE', f'{PODS}/n-0')
        self.ask('create again without a node', 'POST', PODS, free)
        binding = {'apiVersion': 'v1', 'kind': 'Binding', 'metadata': {'name': 'n-0'},
                   'target': {'apiVersion': 'v1', 'kind': 'Node', 'name': 'node'}}
        self.ask('bind', 'POST', f'{PODS}/n-0/binding', binding)
        self.ask('bind again: 409', 'POST', f'{PODS}/n-0/binding', binding)
        _, made = self.ask('get what is bound', 'GET', f'{PODS}/n-0')
        self.ask('patch without a change', 'PATCH', f'{PODS}/n-0', {'metadata': {'labels': {'app': 'w'}}}, MERGE)
        self.ask('patch 404', 'PATCH', f'{PODS}/nope', {'metadata': {'labels': {'app': 'w'}}}, MERGE)
        self.ask('patch of status with metadata and spec', 'PATCH', f'{PODS}/n-0/status',
                 {'metadata': {'labels': {'from': 'status'}}, 'spec': {'priority': 7}, 'status': {'phase': 'Running'}},
                 MERGE)
        self.ask('patch with status', 'PATCH', f'{PODS}/n-0', {'status': {'phase': 'Failed'}}, MERGE)
        self.ask('patch of the node: 422', 'PATCH', f'{PODS}/n-0', {'spec': {'nodeName': 'other'}}, MERGE)
        made['metadata'].pop('resourceVersion')
        made['metadata'].pop('managedFields', None)
        made['metadata']['labels'] = {'app': 'other'}
        self.ask('update without resourceVersion', 'PUT', f'{PODS}/n-0', made)
        self.ask('delete, 60 s', 'DELETE', f'{PODS}/n-0', {'kind': 'DeleteOptions', 'apiVersion': 'v1',
                                                           'gracePeriodSeconds': 60})
        self.ask('delete, sooner', 'DELETE', f'{PODS}/n-0',
                 {'kind': 'DeleteOptions', 'apiVersion': 'v1', 'gracePeriodSeconds': 5})
        self.ask('delete, later', 'DELETE', f'{PODS}/n-0', {'kind': 'DeleteOptions', 'apiVersion': 'v1',
                                                            'gracePeriodSeconds': 20})
        self.ask('patch what is being deleted', 'PATCH', f'{PODS}/n-0', {'metadata': {'labels': {'app': 'w'}}}, MERGE)
        self.ask('delete of another revision: 409', 'DELETE', f'{PODS}/n-0',
                 {'kind': 'DeleteOptions', 'apiVersion': 'v1', 'preconditions': {'resourceVersion': '1'}})
        self.ask('delete at once', 'DELETE', f'{PODS}/k-0?gracePeriodSeconds=0')
        self.ask('watch of more', 'GET',
                 f'{WATCH}&labelSelector=app%3Dw&resourceVersion={empty["metadata"]["resourceVersion"]}', is_watch=True)
        self.ask('lease update without resourceVersion: 422', 'PUT', f'{LEASES}/l',
                 {'apiVersion': 'coordination.k8s.io/v1', 'kind': 'Lease', 'metadata': {'name': 'l'},
                  'spec': {'holderIdentity': 'c'}})
        self.ask('lease update 404', 'PUT', f'{LEASES}/m', {'apiVersion': 'coordination.k8s.io/v1', 'kind': 'Lease',
                                                            'metadata': {'name': 'm'}, 'spec': {'holderIdentity': 'c'}})
        self.ask('lease delete', 'DELETE', f'{LEASES}/l')


def pod(name):
    return {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name, 'labels': {'app': 'w', 'pool': 'a'}},
            'spec': {'automountServiceAccountToken': False, 'nodeName': 'none',
                     'containers': [{'name': 'c', 'image': 'x'}]}}


# ---- comparison ----

# Answers of the cache of a server, which is a hash table, have no order.
UNORDERED = ('list resourceVersion=0', 'watch without rv: synthetic ADDED', 'pods deletecollection')
# A body above 2 KiB is chunked; managedFields, which only a real server has, make bodies longer.
ABOUT_LENGTH = 'transfer-encoding'


def read(path):
    with open(path, encoding='utf-8') as file:
        return [json.loads(line) for line in file]


def essence(exchange):
    """What two servers must have in common: not messages for people, the length of bodies, the build of the server."""
    name, response = exchange['name'], exchange['response']
    if isinstance(response, list):
        response = [{**event, 'object': essence_of(event['object'])} if 'object' in event else essence_of(event)
                    for event in response]
    elif name == 'version':
        response = sorted(response)
    elif isinstance(response, dict):
        response = essence_of(response)
    if name in UNORDERED:
        items = response if isinstance(response, list) else response['items']
        items.sort(key=lambda item: item.get('object', item)['metadata']['name'])
    headers = {key: value for key, value in exchange['headers'].items() if key != ABOUT_LENGTH}
    return {'request': exchange['request'], 'status': exchange['status'], 'headers': headers, 'response': response}


def essence_of(value):
    if value.get('kind') != 'Status':
        return dict(value)
    details = dict(value.get('details', {}))
    if 'causes' in details:
        details['causes'] = sorted({(cause.get('reason', ''), cause.get('field', ''),
                                     cause.get('message', '').split(':')[0]) for cause in details['causes']})
    message = value.get('message') if value.get('reason') in MESSAGES else None
    return {**value, 'details': details, 'message': message}


# Reasons whose messages have a fixed form.
MESSAGES = ('AlreadyExists', 'Conflict', 'Expired', 'Forbidden', 'NotFound', 'Unauthorized')


def main():
    path, address, authority, token = sys.argv[1:]
    host, _, port = address.rpartition(':')
    context = ssl.create_default_context(cafile=authority)
    with open(path, 'w', encoding='utf-8') as out:
        Recorder(lambda: http.client.HTTPSConnection(host, int(port), context=context, timeout=20), token,
                 lambda exchange: out.write(json.dumps(exchange) + '\n')).all()


if __name__ == '__main__':
    main()
