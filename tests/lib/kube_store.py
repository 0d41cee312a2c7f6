"""The objects of the stub of a Kubernetes API server: revisions, selectors, patches and deletion, without HTTP.

Values are dictionaries of JSON without `kind` and `apiVersion`.  A stored value is never changed: each write makes a
new value, so watches and lists read old values without a lock.  The revision rises by one with each write, so a change
is found by its number.  kube_stub.py has the HTTP side.
"""

import base64
import itertools
import json
import random
import re
import threading
import time
import uuid
from collections import namedtuple

from kube_schema import bad_value, check, fill, forbidden_changes, problems

Kind = namedtuple('Kind', 'group name kind namespaced')
KINDS = {(kind.group, kind.name): kind for kind in (
    Kind('', 'pods', 'Pod', True), Kind('', 'nodes', 'Node', False), Kind('', 'namespaces', 'Namespace', False),
    Kind('', 'resourcequotas', 'ResourceQuota', True), Kind('', 'secrets', 'Secret', True),
    Kind('coordination.k8s.io', 'leases', 'Lease', True))}
PODS, NAMESPACES, QUOTAS = KINDS['', 'pods'], KINDS['', 'namespaces'], KINDS['', 'resourcequotas']
LEASES = KINDS['coordination.k8s.io', 'leases']
SYSTEM_NAMESPACES = ('default', 'kube-node-lease', 'kube-public', 'kube-system')
FIRST_REVISION = 1000
CHANGES_KEPT = 100_000
PAGES_KEPT = 64
SUFFIX_LETTERS = 'bcdfghjklmnpqrstvwxz2456789'
FIELDS = {'pods': ('spec.nodeName', 'spec.restartPolicy', 'spec.schedulerName', 'spec.serviceAccountName',
                   'status.phase', 'status.podIP', 'status.nominatedNodeName'), 'nodes': ('spec.unschedulable',),
          'namespaces': ('status.phase',)}


def now(seconds=0):
    return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + seconds))


class Refused(Exception):
    """A request that is answered with a Status."""

    def __init__(self, code, reason, message, headers=(), **details):
        super().__init__(message)
        self.code, self.reason, self.message, self.headers, self.details = code, reason, message, headers, details

    def status(self):
        value = {'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Failure', 'message': self.message,
                 'reason': self.reason}
        return {**value, **({'details': self.details} if self.details else {}), 'code': self.code}


def full_name(kind):
    return f'{kind.name}.{kind.group}' if kind.group else kind.name


def details_of(kind, name=None):
    return {**({'name': name} if name else {}), **({'group': kind.group} if kind.group else {}), 'kind': kind.name}


def not_found(kind, name):
    return Refused(404, 'NotFound', f'{full_name(kind)} "{name}" not found', **details_of(kind, name))


def conflict(kind, name,
             why='the object has been modified; please apply your changes to the latest version and try again'):
    return Refused(409, 'Conflict', f'Operation cannot be fulfilled on {full_name(kind)} "{name}": {why}',
                   **details_of(kind, name))


def bad_request(message):
    return Refused(400, 'BadRequest', message)


def invalid(kind, name, causes, kind_of_details=None):
    """causes: [(field, reason, message)]"""
    messages = [f'{field}: {message}' for field, _, message in causes]
    text = messages[0] if len(messages) == 1 else f'[{", ".join(messages)}]'
    return Refused(422, 'Invalid', f'{kind.kind} "{name}" is invalid: {text}', name=name,
                   **({'group': kind.group} if kind.group else {}), kind=kind_of_details or kind.kind,
                   causes=[{'reason': reason, 'message': message, 'field': field} for field, reason, message in causes])


class Stored:
    """A value of a revision, with the bytes of its JSON."""

    __slots__ = ('kind', 'namespace', 'name', 'value', 'item', 'revision')

    def __init__(self, kind, value):
        metadata = value['metadata']
        self.kind, self.namespace, self.name = kind, metadata.get('namespace', ''), metadata['name']
        self.value, self.revision = value, int(metadata['resourceVersion'])
        self.item = json.dumps(value, separators=(',', ':')).encode()

    @property
    def key(self):
        return self.namespace, self.name

    @property
    def uid(self):
        return self.value['metadata']['uid']

    def full(self):
        return kind_prefix(self.kind) + self.item[1:]

    def copy(self):
        return json.loads(self.item)


def kind_prefix(kind, suffix=''):
    version = f'{kind.group}/v1' if kind.group else 'v1'
    return f'{{"kind":"{kind.kind}{suffix}","apiVersion":"{version}",'.encode()


# ---- selectors ----

NAME = r'(?:[A-Za-z0-9.-]+/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?'
VALUE = r'(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?'
REQUIREMENT = re.compile(
    rf'\s*(?:(?P<absent>!)\s*(?P<unwanted>{NAME})|(?P<key>{NAME})\s*(?:(?P<sign>==|=|!=)\s*(?P<value>{VALUE})'
    rf'|\s(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|$)')


def label_test(text):
    """A function of labels for the text of a labelSelector."""
    tests, at = [], 0
    while at < len(text):
        match = REQUIREMENT.match(text, at)
        if not match:
            raise bad_request(f'unable to parse requirement: found {text[at:]!r}, expected: identifier')
        at = match.end()
        key, value = match['key'] or match['unwanted'], match['value']
        if match['absent']:
            tests.append(lambda labels, key=key: key not in labels)
        elif match['sign'] == '!=':
            tests.append(lambda labels, key=key, value=value: labels.get(key) != value)
        elif match['sign']:
            tests.append(lambda labels, key=key, value=value: labels.get(key) == value)
        elif match['set']:
            values = {one.strip() for one in match['values'].split(',')}
            tests.append(lambda labels, key=key, values=values,
                         inside=match['set'] == 'in': (labels.get(key) in values) == inside)
        else:
            tests.append(lambda labels, key=key: key in labels)
    return lambda labels: all(test(labels) for test in tests)


def field_test(kind, text):
    """A function of values for the text of a fieldSelector."""
    tests = []
    for term in filter(None, text.split(',')):
        match = re.fullmatch(r'([^=!]+)(==|=|!=)(.*)', term)
        if not match:
            raise bad_request(f'invalid selector: {term!r}; can\'t understand {term!r}')
        if match[1] not in ('metadata.name', 'metadata.namespace', *FIELDS.get(kind.name, ())):
            raise bad_request(f'field label not supported: {match[1]}')
        tests.append((match[1].split('.'), match[2] != '!=', match[3]))

    def matches(value):
        for (part, name), wanted, text_of_field in tests:
            if (str(value.get(part, {}).get(name, '')) == text_of_field) != wanted:
                return False
        return True
    return matches


class Selection:
    """The objects of a list or watch: all of a kind, in a namespace or in all, that two selectors accept."""

    def __init__(self, kind, namespace='', labels='', fields=''):
        self.kind, self.namespace = kind, namespace
        self.labels, self.fields = labels and label_test(labels), fields and field_test(kind, fields)

    def accepts(self, stored):
        if stored is None or stored.kind is not self.kind or (self.namespace and stored.namespace != self.namespace):
            return False
        if self.labels and not self.labels(stored.value['metadata'].get('labels') or {}):
            return False
        return not self.fields or self.fields(stored.value)

    def event(self, change):
        """(type, Stored) of what a watch reports of a change, or None."""
        before, after = self.accepts(change.old), self.accepts(change.new)
        if after:
            return 'MODIFIED' if before else 'ADDED', change.new
        if not before:
            return None
        if change.new is None:
            return 'DELETED', change.old
        gone = change.old.copy()          # the labels of the object changed: the watch sees its last fitting state
        gone['metadata']['resourceVersion'] = str(change.revision)
        return 'DELETED', Stored(self.kind, gone)


# ---- patches ----

MERGE, STRATEGIC = 'application/merge-patch+json', 'application/strategic-merge-patch+json'
JSON_PATCH = 'application/json-patch+json'
# The key of a list's items, where a strategic patch merges lists.
MERGE_KEYS = {'conditions': 'type', 'containers': 'name', 'initContainers': 'name', 'env': 'name', 'volumes': 'name',
              'volumeMounts': 'mountPath', 'ports': 'containerPort', 'podIPs': 'ip', 'addresses': 'type',
              'imagePullSecrets': 'name', 'ownerReferences': 'uid', 'topologySpreadConstraints': 'topologyKey'}


def merge_patch(value, patch):
    if not isinstance(patch, dict):
        return patch
    value = dict(value) if isinstance(value, dict) else {}
    for name, part in patch.items():
        if part is None:
            value.pop(name, None)
        else:
            value[name] = merge_patch(value.get(name), part)
    return value


def strategic_patch(value, patch):
    if not isinstance(patch, dict) or patch.get('$patch') == 'replace':
        return {name: part for name, part in patch.items() if name != '$patch'} if isinstance(patch, dict) else patch
    value = dict(value) if isinstance(value, dict) else {}
    for name, part in patch.items():
        if name.startswith('$'):
            continue
        if part is None:
            value.pop(name, None)
        elif isinstance(part, list) and name in MERGE_KEYS:
            value[name] = merged_lists(value.get(name) or [], part, MERGE_KEYS[name])
        elif name == 'finalizers' and isinstance(part, list):
            value[name] = [*(value.get(name) or []), *(one for one in part if one not in (value.get(name) or []))]
        else:
            value[name] = strategic_patch(value.get(name), part)
    return value


def merged_lists(items, patches, key):
    if any(patch.get('$patch') == 'replace' for patch in patches):
        return [patch for patch in patches if '$patch' not in patch]
    items = list(items)
    for patch in patches:
        if key not in patch:
            raise bad_request(f'map: {patch} does not contain declared merge key: {key}')
        at = next((at for at, item in enumerate(items) if item.get(key) == patch[key]), None)
        if patch.get('$patch') == 'delete':
            if at is not None:
                del items[at]
        elif at is None:
            items.append(patch)
        else:
            items[at] = strategic_patch(items[at], patch)
    return items


def pointed(value, words):
    for word in words:
        value = value[int(word)] if isinstance(value, list) else value[word]
    return value


def json_patch(value, operations):
    """RFC 6902; the caller's value is changed.  KeyError, IndexError, ValueError: the patch does not fit."""
    def take(path):
        words = words_of(path)
        parent = pointed(value, words[:-1])
        return parent.pop(int(words[-1])) if isinstance(parent, list) else parent.pop(words[-1])

    def put(path, part):
        words = words_of(path)
        parent = pointed(value, words[:-1])
        if isinstance(parent, list):
            parent.insert(len(parent) if words[-1] == '-' else int(words[-1]), part)
        else:
            parent[words[-1]] = part

    def words_of(path):
        return [word.replace('~1', '/').replace('~0', '~') for word in path.split('/')[1:]]

    for one in operations:
        operation, path = one['op'], one['path']
        if operation == 'test':
            if pointed(value, words_of(path)) != one.get('value'):
                raise ValueError(f'testing value {path} failed: test failed')
        elif operation == 'add':
            put(path, one['value'])
        elif operation == 'remove':
            take(path)
        elif operation == 'replace':
            take(path)
            put(path, one['value'])
        elif operation in ('move', 'copy'):
            part = take(one['from']) if operation == 'move' else json.loads(json.dumps(pointed(value,
                words_of(one['from']))))
            put(path, part)
        else:
            raise ValueError(f'Unexpected kind: {operation}')
    return value


# ---- the store ----

Change = namedtuple('Change', 'revision old new')


class Store:
    """All objects.  `changed` is the lock and the condition that each write notifies."""

    def __init__(self, namespaces=(), seed=0, version=(1, 32)):
        self.changed = threading.Condition(threading.RLock())
        self.version, self.random = version, random.Random(seed)
        self.objects = {kind: {} for kind in KINDS.values()}
        self.revision = self.oldest = FIRST_REVISION     # a watch may begin at the oldest revision or later
        self.changes = {}                                # by revision
        self.pages = {}                                  # of lists with a limit: {(revision, number): [Stored]}
        self.page_numbers = itertools.count()
        for name in dict.fromkeys((*SYSTEM_NAMESPACES, *namespaces)):
            self.create(NAMESPACES, '', {'metadata': {'name': name}})
        self.expire()

    def expire(self):
        """Forget the changes up to now, as after a compaction: older watches and pages are answered with 410."""
        with self.changed:
            self.oldest = self.revision
            self.changes.clear()
            self.pages.clear()

    def wait_for(self, question, seconds=10):
        """The first true answer of question(), which is asked after each change."""
        end = time.monotonic() + seconds
        with self.changed:
            while not (answer := question()):
                is_changed = self.changed.wait(max(0, end - time.monotonic()))
                assert is_changed or question(), f'no answer after {seconds} s'
            return answer

    def find(self, kind, namespace, name):
        found = self.objects[kind].get((namespace, name))
        if not found:
            raise not_found(kind, name)
        return found

    def all(self, kind=PODS, namespace=''):
        with self.changed:
            return [stored for _, stored in sorted(self.objects[kind].items()) if not namespace
                    or stored.namespace == namespace]

    def write(self, old, value, kind):
        """Store a new state of an object; old is None for a new one.  Nothing happens if nothing differs."""
        if old and value == old.value:
            return old
        self.revision += 1
        value['metadata']['resourceVersion'] = str(self.revision)
        new = Stored(kind, value)
        self.objects[kind][new.key] = new
        self.note(Change(self.revision, old, new))
        return new

    def note(self, change):
        self.changes[change.revision] = change
        if len(self.changes) > CHANGES_KEPT:
            self.oldest += 1
            self.changes.pop(self.oldest, None)
        self.changed.notify_all()

    def remove(self, old, value=None):
        """value: the last state, without its revision."""
        value = value or old.copy()
        self.revision += 1
        value['metadata']['resourceVersion'] = str(self.revision)
        last = Stored(old.kind, value)
        del self.objects[old.kind][old.key]
        self.note(Change(self.revision, last, None))
        return last

    def new_uid(self):
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    # -- verbs --

    def create(self, kind, namespace, value, dry_run=False):
        with self.changed:
            metadata = value.setdefault('metadata', {})
            if metadata.get('namespace', namespace) != namespace and kind.namespaced:
                raise bad_request(
                    'the namespace of the provided object does not match the namespace sent on the request')
            if not metadata.get('name') and metadata.get('generateName'):
                metadata['name'] = metadata['generateName'] + ''.join(self.random.choices(SUFFIX_LETTERS, k=5))
            if kind.namespaced:
                metadata['namespace'] = namespace
                self.admit(kind, namespace, metadata.get('name'))
            metadata.update(uid=self.new_uid(), creationTimestamp=now())
            metadata.pop('resourceVersion', None)
            if kind in (PODS, NAMESPACES):
                value.pop('status', None)
            fill(kind.kind, value)
            if causes := problems(kind.kind, value):
                raise invalid(kind, metadata.get('name', ''), causes)
            if (namespace, metadata['name']) in self.objects[kind]:
                raise Refused(409, 'AlreadyExists', f'{full_name(kind)} "{metadata["name"]}" already exists',
                              **details_of(kind, metadata['name']))
            if kind is PODS:
                self.check_quota(namespace, metadata['name'])
            if dry_run:
                return Stored(kind, {**value, 'metadata': {**metadata, 'resourceVersion': '0'}})
            return self.write(None, value, kind)

    def admit(self, kind, namespace, name):
        parent = self.objects[NAMESPACES].get(('', namespace))
        if not parent:
            raise not_found(NAMESPACES, namespace)
        if parent.value['status']['phase'] == 'Terminating':
            message = (f'{full_name(kind)} "{name}" is forbidden: unable to create new content '
                       f'in namespace {namespace} because it is being terminated')
            raise Refused(403, 'Forbidden', message, **details_of(kind, name),
                          causes=[{'reason': 'NamespaceTerminating',
                                   'message': f'namespace {namespace} is being terminated',
                                   'field': 'metadata.namespace'}])

    def check_quota(self, namespace, name):
        """Admission trusts the status that the controller of quotas writes; without a status this store counts pods."""
        for quota in self.all(QUOTAS, namespace):
            status = quota.value.get('status', {})
            hard = status.get('hard') or quota.value.get('spec', {}).get('hard', {})
            label = 'pods' if 'pods' in hard else 'count/pods'
            if label not in hard:
                continue
            phases = [pod.value['status'].get('phase') for pod in self.all(PODS, namespace)]
            used = int(status['used'][label]) if status.get('used') else sum(
                phase not in ('Succeeded', 'Failed') for phase in phases)
            if used >= int(hard[label]):
                why = f'requested: {label}=1, used: {label}={used}, limited: {label}={hard[label]}'
                message = f'pods "{name}" is forbidden: exceeded quota: {quota.name}, {why}'
                raise Refused(403, 'Forbidden', message, **details_of(PODS, name))

    def replace(self, kind, namespace, name, value, subresource=''):
        """PUT and the end of PATCH: value is the whole object."""
        with self.changed:
            if kind is LEASES and (namespace, name) not in self.objects[kind]:
                return self.create(kind, namespace, value)
            old = self.find(kind, namespace, name)
            if kind is LEASES and not value.get('metadata', {}).get('resourceVersion'):
                raise invalid(kind._replace(kind=full_name(kind)), name, [
                    bad_value('metadata.resourceVersion', '0x0', 'must be specified for an update')], kind.name)
            metadata, was = value.setdefault('metadata', {}), old.value['metadata']
            if metadata.get('uid') not in (None, was['uid']):
                self.refuse_uid(kind, name, metadata['uid'], was['uid'])
            if metadata.get('resourceVersion') not in (None, '', was['resourceVersion']):
                raise conflict(kind, name)
            if metadata.get('name', name) != name:
                raise bad_request(
                    f'the name of the object ({metadata["name"]}) does not match the name on the URL ({name})')
            for fixed in ('name', 'namespace', 'uid', 'creationTimestamp', 'resourceVersion', 'generateName',
                          'deletionTimestamp', 'deletionGracePeriodSeconds'):
                metadata.pop(fixed, None)
                if fixed in was:
                    metadata[fixed] = was[fixed]
            for empty in ('labels', 'annotations'):
                if not metadata.get(empty, True):
                    del metadata[empty]
            kept = 'spec' if subresource == 'status' else 'status'
            value.pop(kept, None)
            if kept in old.value:
                value[kept] = old.value[kept]
            fill(kind.kind, value)
            if causes := problems(kind.kind, value) or forbidden_changes(kind.kind, old.value,
                value):
                raise invalid(kind, name, causes)
            return self.write(old, value, kind)

    def refuse_uid(self, kind, name, wanted, found):
        if self.version < (1, 21):
            raise invalid(kind, name, [bad_value('metadata.uid', wanted, 'field is immutable')] * 2)
        raise conflict(kind, name, f'Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}')

    def patch(self, kind, namespace, name, patch, how, subresource='', strict=False):
        with self.changed:
            old = self.find(kind, namespace, name)
            try:
                value = {JSON_PATCH: json_patch, MERGE: merge_patch, STRATEGIC: strategic_patch}[how](old.copy(), patch)
            except (KeyError, IndexError, ValueError, TypeError) as error:
                raise Refused(422, 'Invalid',
                              f'the server rejected our request due to an error in our request: {error}') from error
            for name_of_type in ('kind', 'apiVersion'):
                value.pop(name_of_type, None)
            check(kind.kind, value, strict, self.version, bad_request)
            return self.replace(kind, namespace, name, value, subresource)

    def modify(self, pod, **status):
        """For a kubelet: merge members into the status of a pod, if the pod with this uid is still there."""
        with self.changed:
            old = self.objects[PODS].get(pod.key)
            if not old or old.uid != pod.uid:
                return None
            value = old.copy()
            value['status'].update(status)
            return self.write(old, value, PODS)

    def bind(self, pod, node):
        with self.changed:
            old = self.objects[PODS].get(pod.key)
            if not old or old.uid != pod.uid:
                return None
            if old.value['spec'].get('nodeName'):
                raise conflict(PODS._replace(name='pods/binding'), pod.name,
                               f'pod {pod.name} is already assigned to node "{old.value["spec"]["nodeName"]}"')
            value = old.copy()
            value['spec']['nodeName'] = node
            condition = {'type': 'PodScheduled', 'status': 'True', 'lastProbeTime': None, 'lastTransitionTime': now()}
            value['status']['conditions'] = merged_lists(value['status'].get('conditions') or [], [condition], 'type')
            return self.write(old, value, PODS)

    def delete(self, kind, namespace, name, uid=None, revision=None, grace=None, dry_run=False):
        """(the object as a client sees it, whether it is gone)"""
        with self.changed:
            old = self.find(kind, namespace, name)
            for word, wanted, found in (('UID', uid, old.uid), ('ResourceVersion', revision, str(old.revision))):
                if wanted not in (None, found):
                    fate = 'deleted and then recreated' if word == 'UID' else 'modified'
                    why = (f'the {word} in the precondition ({wanted}) does not match the {word} in record ({found}). '
                           f'The object might have been {fate}')
                    raise Refused(409, 'Conflict', f'Operation cannot be fulfilled on {kind.kind} "{name}": {why}',
                                  name=name, kind=kind.kind)
            if dry_run:
                return old, False
            if kind is NAMESPACES:
                value = old.copy()
                value['metadata'].setdefault('deletionTimestamp', now())
                value['status']['phase'] = 'Terminating'      # the controller of namespaces would remove it
                return self.write(old, value, kind), False
            if kind is not PODS:
                return self.remove(old), True
            return self.delete_pod(old, grace)

    def delete_pod(self, old, grace):
        value = old.copy()
        metadata, spec = value['metadata'], value['spec']
        if grace is None:
            grace = spec.get('terminationGracePeriodSeconds', 30)
        if not spec.get('nodeName') or value['status'].get('phase') in ('Succeeded', 'Failed'):
            grace = 0
        grace = 1 if grace < 0 else grace
        before = metadata.get('deletionGracePeriodSeconds')
        if before is not None and grace and grace >= before:
            return old, False
        metadata['deletionTimestamp'] = now(grace) if before is None or grace else metadata['deletionTimestamp']
        metadata['deletionGracePeriodSeconds'] = grace
        if grace:
            return self.write(old, value, PODS), False
        if before != 0:
            old = self.write(old, value, PODS)       # a watch sees the deletionTimestamp of a forced deletion as well
        self.remove(old, json.loads(json.dumps(value)))
        return Stored(PODS, value), True             # a client sees the revision before the end

    def chosen(self, selection, is_cached=False):
        """The cache of a real server is a hash table: its answers have no order."""
        with self.changed:
            found = [stored for stored in self.all(selection.kind, selection.namespace) if selection.accepts(stored)]
            if is_cached:
                self.random.shuffle(found)
            return found

    def list(self, selection, limit=0, token='', is_cached=False):
        """The bytes of a list.  Lists of the cache know no limit."""
        with self.changed:
            limit = 0 if is_cached else limit
            if token:
                revision, number, start = self.page(token)
                found = self.pages[revision, number]
            else:
                revision, number, start = self.revision, next(self.page_numbers), 0
                found = self.chosen(selection, is_cached)
        shown = found[start:start + limit] if limit else found[start:]
        metadata = {'resourceVersion': str(revision)}
        if start + len(shown) < len(found):
            while len(self.pages) >= PAGES_KEPT:
                self.pages.pop(next(iter(self.pages)))
            self.pages[revision, number] = found
            place = json.dumps({'v': 'meta.k8s.io/v1', 'rv': revision, 'list': number, 'start': start + len(shown)})
            metadata['continue'] = base64.urlsafe_b64encode(place.encode()).decode()
            if not (selection.labels or selection.fields):
                metadata['remainingItemCount'] = len(found) - start - len(shown)
        head = kind_prefix(selection.kind, 'List') + b'"metadata":' + json.dumps(metadata,
            separators=(',', ':')).encode() + b',"items":['
        return head + b','.join(stored.item for stored in shown) + b']}\n'

    def page(self, token):
        try:
            place = json.loads(base64.urlsafe_b64decode(token))
            key = place['rv'], place['list'], place['start']
        except (ValueError, KeyError, TypeError) as error:
            raise bad_request('continue key is not valid: ' + str(error)) from error
        if key[:2] not in self.pages:
            raise Refused(410, 'Expired',
                          'The provided continue parameter is too old to display a consistent list result. You can '
                          'start a new list without the continue parameter, or use the continue token in this response '
                          'to retrieve the remainder of the results.')
        return key
