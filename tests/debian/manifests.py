#!/usr/bin/python3
"""Compares the objects of deploy/ with the types of a kube-apiserver, and has the server check each (dryRun).

    manifests.py PROGRAMS

PROGRAMS is the folder that `apiserver build` prints.  The server is 1.20.2, so objects of later groups are left out, and
later members are listed here with their version.
"""

import http.client
import json
import ssl
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests/lib'))

from kube_server import KubeServer                # noqa: E402  (the path is set above)
from kustomize import load, objects               # noqa: E402

FOLDERS = [*sorted((ROOT / 'deploy/kubernetes/overlays').iterdir()), ROOT / 'deploy/agent-sandbox']
PATHS = {'Namespace': 'api/v1/namespaces', 'ServiceAccount': 'api/v1/namespaces/NS/serviceaccounts', 'ConfigMap': 'api/v1/namespaces/NS/configmaps',
         'Service': 'api/v1/namespaces/NS/services', 'ResourceQuota': 'api/v1/namespaces/NS/resourcequotas', 'Pod': 'api/v1/namespaces/NS/pods',
         'Role': 'apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles', 'RoleBinding': 'apis/rbac.authorization.k8s.io/v1/namespaces/NS/rolebindings',
         'Deployment': 'apis/apps/v1/namespaces/NS/deployments', 'DaemonSet': 'apis/apps/v1/namespaces/NS/daemonsets',
         'NetworkPolicy': 'apis/networking.k8s.io/v1/namespaces/NS/networkpolicies',
         'PodDisruptionBudget': 'apis/policy/v1beta1/namespaces/NS/poddisruptionbudgets'}
LATER_KINDS = {'SandboxTemplate', 'SandboxWarmPool'}
LATER = {'hostUsers': '1.25', 'unhealthyPodEvictionPolicy': '1.26'}


class Server:
    def __init__(self, server):
        self.server = server
        self.definitions = self.ask('GET', '/openapi/v2')[1]['definitions']

    def ask(self, method, path, body=None):
        context = ssl.create_default_context(cafile=self.server.ca)
        context.check_hostname = False
        connection = http.client.HTTPSConnection(self.server.host, self.server.port, context=context, timeout=60)
        connection.request(method, path, json.dumps(body) if body else None,
                           {'Authorization': f'Bearer {self.server.token}', 'Content-Type': 'application/json', 'Accept': 'application/json'})
        answer = connection.getresponse()
        content = json.loads(answer.read())
        connection.close()
        return answer.status, content

    def definition(self, thing):
        group, _, version = thing['apiVersion'].rpartition('/')
        for name, one in self.definitions.items():
            for kind in one.get('x-kubernetes-group-version-kind', []):
                if (kind['group'], kind['version'], kind['kind']) == (group, version, thing['kind']) and 'spec' not in name.split('.')[-1]:
                    return one
        return None

    def unknown(self, value, schema, path):
        """The members that no type has, and values of another type."""
        while '$ref' in schema:
            schema = self.definitions[schema['$ref'].rpartition('/')[2]]
        if 'properties' in schema and isinstance(value, dict):
            for name, member in value.items():
                if name in schema['properties']:
                    yield from self.unknown(member, schema['properties'][name], f'{path}.{name}')
                elif name not in LATER:
                    yield f'{path}.{name} is not known'
        elif 'additionalProperties' in schema and isinstance(value, dict):
            for name, member in value.items():
                yield from self.unknown(member, schema['additionalProperties'], f'{path}.{name}')
        elif schema.get('type') == 'array' and isinstance(value, list):
            for i, member in enumerate(value):
                yield from self.unknown(member, schema['items'], f'{path}[{i}]')
        else:
            expected = {'string': (str, int) if schema.get('format') == 'int-or-string' else (str,), 'integer': (int,), 'boolean': (bool,),
                        'object': (dict,), 'array': (list,), 'number': (int, float)}.get(schema.get('type'), (object,))
            if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected and object not in expected):
                yield f'{path} is {value!r}, and has to be {schema.get("type")}'


def findings(server, folder):
    things = objects(folder)
    # The gateway's pods come from a file of the ConfigMap; name and image are the gateway's work.
    for thing in [one for one in things if one['kind'] == 'ConfigMap' and 'worker.yaml' in one['data']]:
        path = Path(server.server.folder) / 'worker.yaml'
        path.write_text(thing['data']['worker.yaml'], encoding='utf-8')
        pod, = load(path)
        pod['metadata'] |= {'name': 'caisson-worker-0', 'namespace': 'caisson'}
        pod['spec']['containers'][0]['image'] = 'caisson:1'
        things.append(pod)
    for thing in things:
        if thing['kind'] == 'PodDisruptionBudget':
            thing['apiVersion'] = 'policy/v1beta1'
        if thing['kind'] in LATER_KINDS:
            continue
        name, space = f'{folder.name}: {thing["kind"]} {thing["metadata"]["name"]}', thing['metadata'].get('namespace', '')
        schema = server.definition(thing)
        if not schema:
            yield f'{name}: {thing["apiVersion"]} has no such kind'
            continue
        yield from (f'{name}{problem}' for problem in server.unknown(thing, schema, ''))
        status, answer = server.ask('POST', f'/{PATHS[thing["kind"]].replace("NS", space)}?dryRun=All', thing)
        if status not in (200, 201) and not (thing['kind'] == 'Namespace' and status == 409):
            yield f'{name}: {status} {answer.get("message")}'


def main():
    found, count = [], 0
    with tempfile.TemporaryDirectory(prefix='manifests-') as folder:
        with KubeServer(sys.argv[1], folder) as running:
            server = Server(running)
            for name in ('caisson', 'caisson-node'):
                server.ask('POST', '/api/v1/namespaces', {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': name}})
            for one in FOLDERS:
                count += len(objects(one))
                found += findings(server, one)
    print(f'{count} objects of {len(FOLDERS)} folders, {len(found)} findings', *found, sep='\n')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
