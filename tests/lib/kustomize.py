"""kustomize as far as deploy/ needs it, for hosts whose kubectl is too old: the objects of a folder.

    objects(folder)       # [{'apiVersion': ..., 'kind': ...}]

Fields: resources, components, namespace, configMapGenerator, images, patches (strategic merge of maps and of lists with
names; JSON patches).  replacements are left out, and names of generated objects have no hash.
"""

from pathlib import Path

import yaml

FIELDS = {'apiVersion', 'kind', 'resources', 'components', 'namespace', 'configMapGenerator', 'images', 'patches',
          'replacements'}
NAMES = ('name', 'containerPort', 'port')
CLUSTER = {'Namespace', 'ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'}


def load(path):
    return [document for document in yaml.safe_load_all(Path(path).read_text(encoding='utf-8')) if document]


def kustomization(folder):
    found, = load(Path(folder) / 'kustomization.yaml')
    assert set(found) <= FIELDS, set(found) - FIELDS
    return found


def key_of(thing):
    return thing['kind'], thing['metadata'].get('namespace', ''), thing['metadata']['name']


def merge(old, new):
    """A strategic merge patch."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name, value in new.items():
            if value is None:
                old.pop(name, None)
            else:
                old[name] = merge(old[name], value) if name in old else value
        return old
    key = next((key for key in NAMES if isinstance(new, list) and new and isinstance(new[0], dict) and key in new[0]), None)
    if not key or not isinstance(old, list):
        return new
    for member in new:
        same = [one for one in old if one.get(key) == member[key]]
        if same:
            merge(same[0], member)
        else:
            old.append(member)
    return old


def json_patch(thing, operations):
    for operation in operations:
        *path, last = operation['path'].strip('/').split('/')
        parent = thing
        for word in path:
            parent = parent[int(word) if isinstance(parent, list) else word]
        assert last in parent, operation
        if operation['op'] == 'remove':
            del parent[last]
        else:
            assert operation['op'] == 'replace', operation
            parent[last] = operation['value']


def apply_patch(found, patch):
    content = yaml.safe_load(patch['patch'])
    if 'target' in patch:
        chosen = [one for one in found if one['kind'] == patch['target']['kind'] and one['metadata']['name'] == patch['target']['name']]
        assert chosen, patch
        for one in chosen:
            json_patch(one, content)
        return found
    old, = [one for one in found if key_of(one) == key_of(content)]
    if content.pop('$patch', '') == 'delete':
        return [one for one in found if one is not old]
    merge(old, content)
    return found


def generate(found, folder, rows, namespace):
    for row in rows:
        made = {'apiVersion': 'v1', 'kind': 'ConfigMap',
                'metadata': {'name': row['name'], **({'namespace': row.get('namespace', namespace)} if row.get('namespace', namespace) else {})},
                'data': {Path(name).name: (folder / name).read_text(encoding='utf-8') for name in row['files']}}
        old = [one for one in found if key_of(one) == key_of(made)]
        assert len(old) == (row.get('behavior') in ('replace', 'merge')), row
        if row.get('behavior') == 'merge':
            made['data'] = {**old[0]['data'], **made['data']}
        found = [one for one in found if one not in old] + [made]
    return found


def pods_of(thing):
    """The specs of the pods that an object makes."""
    spec = thing.get('spec') or {}
    return [template['spec'] for template in (spec.get('template'), spec.get('podTemplate')) if template]


def set_images(found, images):
    for thing in found:
        for pod in pods_of(thing) if thing['kind'] != 'SandboxTemplate' else []:
            for container in pod['containers'] + pod.get('initContainers', []):
                for image in images:
                    if container['image'].partition(':')[0] == image['name']:
                        container['image'] = f'{image["newName"]}:{image["newTag"]}'


def add(found, folder):
    """Add what a kustomization has to what is there, which its patches may change."""
    folder = Path(folder)
    rows = kustomization(folder)
    for name in rows.get('resources', []):
        path = folder / name
        more = add([], path) if path.is_dir() else load(path)
        assert not {key_of(one) for one in more} & {key_of(one) for one in found}, name
        found = found + more
    for name in rows.get('components', []):
        found = add(found, folder / name)
    namespace = rows.get('namespace', '')
    found = generate(found, folder, rows.get('configMapGenerator', []), namespace)
    for patch in rows.get('patches', []):
        found = apply_patch(found, patch)
    for thing in found if namespace else []:
        if thing['kind'] == 'Namespace':
            thing['metadata']['name'] = namespace
        elif thing['kind'] not in CLUSTER:
            thing['metadata']['namespace'] = namespace
        for subject in thing.get('subjects', []):
            subject['namespace'] = namespace
    set_images(found, rows.get('images', []))
    return found


def objects(folder):
    return add([], folder)
