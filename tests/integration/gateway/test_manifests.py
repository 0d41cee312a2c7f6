"""deploy/kubernetes and deploy/agent-sandbox: what the files say, and that they agree with the gateway.

    /usr/bin/python3 -m pytest -q tests/integration/gateway/test_manifests.py

kubectl builds the overlays as well, if it is 1.21 or newer; CAISSON_KUBECTL names another program.
"""

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest

yaml = pytest.importorskip('yaml', reason='needs PyYAML: Debian package python3-yaml')

from cli import ROOT, caisson                     # noqa: E402  (yaml may be missing)
from daemon import until                          # noqa: E402
from fleet import Gateway                         # noqa: E402
from kube_schema import POD_SPEC, amount          # noqa: E402
from kube_stub import KubeStub                    # noqa: E402
from kustomize import kustomization, load, objects, pods_of     # noqa: E402

DEPLOY = ROOT / 'deploy'
KUBERNETES = DEPLOY / 'kubernetes'
OVERLAYS = ['owned', 'owned-tier-a', 'small', 'external']
FOLDERS = {**{name: KUBERNETES / 'overlays' / name for name in OVERLAYS}, 'agent-sandbox': DEPLOY / 'agent-sandbox'}
FILES = sorted([*KUBERNETES.rglob('*.yaml'), *(DEPLOY / 'agent-sandbox').rglob('*.yaml')])
GATEWAY, WORKER = ({'app.kubernetes.io/name': f'caisson-{name}'} for name in ('gateway', 'worker'))
KEYS_SECRET, KEY_SECRET = 'caisson-keys', 'caisson-gateway-key'

each_folder = pytest.mark.parametrize('name', FOLDERS)


@lru_cache
def _text(name):
    return json.dumps(objects(FOLDERS[name]))


def built(name):
    return json.loads(_text(name))


def of_kind(things, kind, name=None):
    return [thing for thing in things if thing['kind'] == kind and name in (None, thing['metadata']['name'])]


def one(things, kind, name):
    found, = of_kind(things, kind, name)
    return found


def settings_of(name, folder):
    """{key: value} of the configuration in the ConfigMap, as the program reads it."""
    for file, text in one(built(name), 'ConfigMap', 'caisson-gateway')['data'].items():
        (folder / file).write_text(text, encoding='utf-8')
    file = folder / 'caisson.yaml'
    shown = caisson('config', 'show', '--json', '--config', file)
    assert shown.status == 0, shown.err
    return {row['key']: row['value'] for row in json.loads(shown.out)}


def gateway_pod(name):
    pod, = pods_of(one(built(name), 'Deployment', 'caisson-gateway'))
    return pod


# ---- files ----

@pytest.mark.parametrize('path', FILES, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_every_file_is_yaml_with_kinds(path):
    for document in load(path) if path.name != 'caisson.yaml' else []:
        assert document['apiVersion'] and document['kind']
        assert document['kind'] in ('Kustomization', 'Component', 'Pod') or document['metadata']['name']


def test_kustomizations_name_files_that_exist_and_all_of_them():
    folders = {path.parent for path in FILES if path.name == 'kustomization.yaml'}
    assert len(folders) == 9
    for folder in folders:
        rows, named = kustomization(folder), {'kustomization.yaml'}
        for name in rows.get('resources', []) + rows.get('components', []):
            assert (folder / name).exists(), f'{folder}: {name}'
            named.add(name)
        for row in rows.get('configMapGenerator', []):
            named |= set(row['files'])
        assert {path.name for path in folder.iterdir() if path.suffix in ('.yaml', '.json')} <= named, folder


def test_commented_components_exist():
    for name in OVERLAYS:
        for path in re.findall(r'^# +- (\.\./\S+)', (FOLDERS[name] / 'kustomization.yaml').read_text(encoding='utf-8'), flags=re.M):
            assert (FOLDERS[name] / path / 'kustomization.yaml').exists(), path


def test_there_is_no_secret_in_the_files():
    for path in FILES:
        assert not of_kind([document for document in load(path) if 'kind' in document], 'Secret'), path
    assert not [path for path in KUBERNETES.rglob('*') if path.suffix in ('.key', '.pem', '.crt')]


def test_the_profile_is_that_of_containers():
    assert (KUBERNETES / 'components/seccomp/caisson.json').read_bytes() == (DEPLOY / 'container/seccomp.json').read_bytes(), \
        'cp deploy/container/seccomp.json deploy/kubernetes/components/seccomp/caisson.json'


def test_the_image_has_the_version():
    version = re.search(r"^  version: '([\d.]+)',$", (ROOT / 'meson.build').read_text(encoding='utf-8'), flags=re.M)[1]
    for path in FILES:
        text = path.read_text(encoding='utf-8')
        assert set(re.findall(r'\bcaisson:(\d[\w.-]*)', text) + re.findall(r'newTag: (\S+)', text)) <= {version}, path
        assert not re.search(r'image: .*/', text), f'{path} names a registry'


# ---- kubectl ----

def kubectl():
    program = os.environ.get('CAISSON_KUBECTL') or shutil.which('kubectl')
    if not program:
        pytest.skip('needs kubectl 1.21')
    shown = subprocess.run([program, 'version', '--client', '-o', 'json'], capture_output=True, text=True, check=True).stdout
    version = json.loads(shown)['clientVersion']
    found = int(version['major']), int(re.match(r'\d+', version['minor'])[0])
    if found < (1, 21):
        pytest.skip(f'needs kubectl 1.21: kubectl {found[0]}.{found[1]} has kustomize 2.0.3, which knows no components')
    return program


def built_by_kubectl(folder):
    done = subprocess.run([kubectl(), 'kustomize', folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    text = re.sub(r'\b(caisson-(?:gateway|seccomp))-[0-9a-z]{10}\b', r'\1', done.stdout)     # hashes of contents
    return [document for document in yaml.safe_load_all(text) if document]


@each_folder
def test_kubectl_builds_the_same(name):
    def sorted_by_name(things):
        return sorted(things, key=lambda thing: (thing['kind'], thing['metadata']['name']))
    assert sorted_by_name(built_by_kubectl(FOLDERS[name])) == sorted_by_name(built(name))


def test_one_image_and_every_component(tmp_path):
    """An overlay with all components, and another image for all of it."""
    shutil.copytree(KUBERNETES, tmp_path / 'kubernetes')
    folder = tmp_path / 'kubernetes/overlays/owned'
    text = (folder / 'kustomization.yaml').read_text(encoding='utf-8')
    text = re.sub(r'^# +(- \.\./)', r'  \1', text, flags=re.M).replace('newTag: 0.1.0', 'newTag: 9.9.9').replace('newName: caisson', 'newName: house.example/caisson')
    (folder / 'kustomization.yaml').write_text(text, encoding='utf-8')
    things = built_by_kubectl(folder)
    wanted = 'house.example/caisson:9.9.9'
    images = [container['image'] for thing in things for pod in pods_of(thing) for container in pod['containers'] + pod.get('initContainers', [])]
    assert set(images) == {wanted} and len(images) == 3
    pod, = pods_of(one(things, 'Deployment', 'caisson-gateway'))
    assert {'name': 'CAISSON_KUBERNETES_IMAGE', 'value': wanted} in pod['containers'][0]['env']
    policy = one(things, 'ValidatingAdmissionPolicy', 'caisson-workers')['spec']
    assert policy['variables'][0] == {'name': 'image', 'expression': f"'{wanted}'"}
    assert one(things, 'ServiceMonitor', 'caisson-gateway')


# ---- objects ----

@each_folder
def test_selectors_match_labels(name):
    things = built(name)
    for thing in things:
        spec = thing.get('spec') or {}
        if thing['kind'] in ('Deployment', 'DaemonSet'):
            labels = spec['template']['metadata']['labels']
            assert spec['selector']['matchLabels'].items() <= labels.items() and thing['metadata']['labels'].items() <= {**labels, 'app.kubernetes.io/part-of': 'caisson'}.items()
    assert one(things, 'Service', 'caisson-gateway')['spec']['selector'] == GATEWAY
    assert one(things, 'NetworkPolicy', 'caisson-worker')['spec']['podSelector']['matchLabels'] == WORKER
    for budget in of_kind(things, 'PodDisruptionBudget'):
        assert budget['spec']['selector']['matchLabels'] == {'app.kubernetes.io/name': budget['metadata']['name']}


@each_folder
def test_references_lead_somewhere(name):
    things = built(name)
    there = Counter((thing['kind'], thing['metadata'].get('namespace', ''), thing['metadata']['name']) for thing in things)
    assert max(there.values()) == 1
    for thing in things:
        space = thing['metadata'].get('namespace', '')
        assert thing['kind'] == 'Namespace' or ('Namespace', '', space) in there, thing['metadata']
        for pod in pods_of(thing):
            for volume in pod['volumes']:
                if 'configMap' in volume:
                    assert ('ConfigMap', space, volume['configMap']['name']) in there
                if 'secret' in volume:
                    assert volume['secret']['secretName'] in (KEY_SECRET, KEYS_SECRET)     # docs/use/gateway.md makes both
            if 'serviceAccountName' in pod:
                assert ('ServiceAccount', space, pod['serviceAccountName']) in there
            names = {volume['name'] for volume in pod['volumes']}
            for container in pod['containers'] + pod.get('initContainers', []):
                assert {mount['name'] for mount in container['volumeMounts']} <= names
    binding = one(things, 'RoleBinding', 'caisson-gateway')
    assert ('Role', 'caisson', binding['roleRef']['name']) in there
    assert binding['subjects'] == [{'kind': 'ServiceAccount', 'name': 'caisson-gateway', 'namespace': 'caisson'}]


@each_folder
def test_rights_are_those_that_are_needed(name):
    things = built(name)
    role, = of_kind(things, 'Role')
    assert not of_kind(things, 'ClusterRole') and not of_kind(things, 'ClusterRoleBinding')
    rights = {(resource, verb) for rule in role['rules'] for resource in rule['resources'] for verb in rule['verbs']}
    pods = {('pods', verb) for verb in ('get', 'list', 'watch')}
    owned = {('pods', verb) for verb in ('create', 'delete', 'patch')} | {('leases', verb) for verb in ('get', 'create', 'update')}
    assert rights == (pods if name in ('external', 'agent-sandbox') else pods | owned)
    assert not any('exec' in resource or 'secret' in resource or '*' in resource + verb for resource, verb in rights)


@each_folder
def test_the_namespace_enforces_pod_security(name):
    things = built(name)
    labels = one(things, 'Namespace', 'caisson')['metadata']['labels']
    assert labels['pod-security.kubernetes.io/enforce'] == 'baseline' and labels['pod-security.kubernetes.io/warn'] == 'restricted'
    pod = gateway_pod(name)
    assert pod['securityContext']['runAsNonRoot'] and pod['securityContext']['seccompProfile'] == {'type': 'RuntimeDefault'}
    for container in pod['containers'] + pod['initContainers']:
        security = container['securityContext']
        assert not security['allowPrivilegeEscalation'] and security['readOnlyRootFilesystem'] and security['capabilities'] == {'drop': ['ALL']}
    for thing in things:
        for pod in pods_of(thing):
            # baseline refuses a path of the node
            assert thing['metadata']['namespace'] != 'caisson' or not [volume for volume in pod['volumes'] if 'hostPath' in volume]
            # else variables of the Service caisson-gateway would be wrong settings
            assert pod['enableServiceLinks'] is False


@each_folder
def test_ports_agree(name, tmp_path):
    things, settings, pod = built(name), settings_of(name, tmp_path), gateway_pod(name)
    port = int(settings['gateway.listen'].rpartition(':')[2])
    worker_port = int(settings['kubernetes.port'])
    assert pod['containers'][0]['ports'] == [{'name': 'http', 'containerPort': port}]
    service, = one(things, 'Service', 'caisson-gateway')['spec']['ports']
    assert service['port'] == port and service['targetPort'] == 'http'
    closed = one(things, 'NetworkPolicy', 'caisson-closed')['spec']
    assert closed == {'podSelector': {}, 'policyTypes': ['Ingress', 'Egress']}
    worker = one(things, 'NetworkPolicy', 'caisson-worker')['spec']
    assert worker['ingress'] == [{'from': [{'podSelector': {'matchLabels': GATEWAY}}], 'ports': [{'protocol': 'TCP', 'port': worker_port}]}]
    assert [sorted(entry['port'] for entry in rule['ports']) for rule in worker['egress']] == [[53, 53]]
    gateway = one(things, 'NetworkPolicy', 'caisson-gateway')['spec']
    assert gateway['podSelector'] == {'matchLabels': GATEWAY} and gateway['ingress'][0]['ports'] == [{'protocol': 'TCP', 'port': port}]
    assert {'to': [{'podSelector': {'matchLabels': WORKER}}], 'ports': [{'protocol': 'TCP', 'port': worker_port}]} in gateway['egress']
    assert [rule for rule in gateway['egress'] if {443, 6443} == {entry['port'] for entry in rule['ports']}]


@each_folder
def test_the_configuration_is_that_of_the_pod(name, tmp_path):
    settings, pod = settings_of(name, tmp_path), gateway_pod(name)
    container = pod['containers'][0]
    paths = {mount['name']: mount['mountPath'] for mount in container['volumeMounts']}
    volumes = {volume['name']: volume for volume in pod['volumes']}
    assert container['args'] == ['caisson', 'gateway', '--config', f'{paths["config"]}/caisson.yaml']
    assert settings['gateway.key_file'] == f'{paths["gateway-key"]}/key' and volumes['gateway-key']['secret']['secretName'] == KEY_SECRET
    assert settings['engine.state_dir'] == paths['state'] and settings['gateway.keys'] == 'gateway'
    shutdown = int(re.fullmatch(r'(\d+)s', settings['gateway.shutdown'])[1])
    assert pod['terminationGracePeriodSeconds'] >= shutdown + 30
    assert settings['kubernetes.selector'] == ','.join(f'{key}={value}' for key, value in WORKER.items())
    if settings['kubernetes.mode'] == 'owned':
        assert settings['kubernetes.key_secret'] == KEY_SECRET
        assert settings['kubernetes.template_file'] == f'{paths["config"]}/worker.yaml'
        worker, = yaml.safe_load_all(one(built(name), 'ConfigMap', 'caisson-gateway')['data']['worker.yaml'])
        assert worker['spec']['terminationGracePeriodSeconds'] == int(settings['kubernetes.grace'])
    for probe, path in (('startupProbe', '/healthz'), ('readinessProbe', '/readyz'), ('livenessProbe', '/healthz')):
        assert container[probe]['httpGet'] == {'path': path, 'port': 'http'}


@each_folder
def test_every_key_of_the_configuration_is_known(name, tmp_path):
    """A key that is not known would be an error; each key that is there has its value from the file."""
    file = tmp_path / 'caisson.yaml'
    settings_of(name, tmp_path)
    rows = json.loads(caisson('config', 'show', '--json', '--config', file).out)
    sections = yaml.safe_load(file.read_text(encoding='utf-8'))
    written = {f'{section}.{key}' for section, keys in sections.items() for key in keys}
    assert written == {row['key'] for row in rows if str(file) in row['source']}


@each_folder
def test_budgets_let_a_node_be_drained(name, tmp_path):
    settings, things = settings_of(name, tmp_path), built(name)
    for budget in of_kind(things, 'PodDisruptionBudget', 'caisson-worker'):
        spec = budget['spec']
        if of_kind(things, 'Deployment', 'caisson-worker'):
            assert spec['maxUnavailable'] == '25%' and 'minAvailable' not in spec
        else:
            # pods without a controller: a number, and fewer than there always are
            assert 0 < spec['minAvailable'] < int(settings['kubernetes.pool_min']) and 'maxUnavailable' not in spec
    assert name != 'small' or not of_kind(things, 'PodDisruptionBudget')


# ---- pods of workers ----

def pod_of_gateway(name, folder, *more):
    """A pod as the gateway with the overlay's configuration makes it, at the stand-in API server."""
    settings = settings_of(name, folder)
    with KubeStub() as stub:
        account = stub.service_account(folder / 'account')
        options = ['--config', folder / 'caisson.yaml']
        for key, value in (('api_url', stub.url), ('token_file', account / 'token'), ('ca_file', stub.ca or ''), ('image', 'caisson:0.1.0'), ('namespace', stub.namespaces[0])):
            options += ['--set', f'kubernetes.{key}={value}']
        options += ['--set', f'kubernetes.template_file={folder}/{Path(settings["kubernetes.template_file"]).name}']
        gateway = Gateway(folder, [], *options, *more)
        try:
            pods = until(lambda: (lambda pods: pods if len(pods) >= 1 else None)(stub.pods()))
        finally:
            assert gateway.stop() == 0
        assert not stub.errors
        return pods[0]


def essence(pod):
    """What an object says of a pod, without what a server adds: members of our files alone."""
    found = {key: value for key, value in pod.items() if key in POD_SPEC}
    return json.loads(json.dumps(found, sort_keys=True))


def is_part(part, whole, path='spec'):
    """Whether all that `part` says is in `whole`; a list has the same members."""
    if isinstance(part, dict):
        assert isinstance(whole, dict), path
        for key, value in part.items():
            assert key in whole, f'{path}.{key}'
            is_part(value, whole[key], f'{path}.{key}')
    elif isinstance(part, list):
        assert len(part) == len(whole), path
        for i, value in enumerate(part):
            is_part(value, whole[i], f'{path}[{i}]')
    else:
        assert part == whole, f'{path}: {part!r}, {whole!r}'


@pytest.mark.parametrize('name, kind', [('external', 'Deployment'), ('agent-sandbox', 'SandboxTemplate')])
def test_workers_of_others_are_those_that_the_gateway_makes(name, kind, tmp_path):
    made = pod_of_gateway('owned', tmp_path)
    thing = one(built(name), kind, 'caisson-worker')
    template = thing['spec'].get('template') or thing['spec']['podTemplate']
    assert WORKER.items() <= template['metadata']['labels'].items() and WORKER.items() <= made['metadata']['labels'].items()
    is_part(essence(template['spec']), made['spec'])


def test_pods_of_the_overlays_have_their_tiers(tmp_path):
    specs = {}
    for name in ('owned', 'owned-tier-a', 'small'):
        (tmp_path / name).mkdir()
        specs[name] = pod_of_gateway(name, tmp_path / name)['spec']
    for name, spec in specs.items():
        security, inside = spec['containers'][0]['securityContext'], spec['securityContext']
        assert spec['hostUsers'] is False and spec['serviceAccountName'] == 'caisson-worker' and spec['automountServiceAccountToken'] is False
        assert inside['seccompProfile'] == {'type': 'Localhost', 'localhostProfile': 'caisson.json'} and security['procMount'] == 'Unmasked'
        assert security['capabilities']['drop'] == ['ALL'] and security['readOnlyRootFilesystem']
        if name == 'owned-tier-a':
            assert inside['runAsUser'] == 0 and security['allowPrivilegeEscalation']
        else:
            assert inside['runAsNonRoot'] and inside['runAsUser'] and 'add' not in security['capabilities'] and not security['allowPrivilegeEscalation']
    assert specs['small']['containers'][0]['resources']['requests']['memory'] == '512Mi'


def test_pods_differ_from_the_built_in_one_where_they_have_to(tmp_path):
    """The gateway's own pod, without the file, has the same probes, ports, volumes and Secret."""
    ours = pod_of_gateway('owned', tmp_path)['spec']
    built_in = pod_of_gateway('owned', tmp_path, '--set', 'kubernetes.template_file=', '--set', 'kubernetes.service_account=caisson-worker')['spec']
    own, theirs = ours['containers'][0], built_in['containers'][0]
    variables = [{entry['name']: entry['value'] for entry in container.pop('env')} for container in (own, theirs)]
    assert all(int(one.pop('CAISSON_ENGINE_RUNNING_MAX')) > 1 for one in variables) and variables[1].pop('CAISSON_LISTEN', True)    # of caisson-start
    assert variables[0] == variables[1]
    is_part(essence(ours), built_in)
    is_part(essence(built_in), ours)


@pytest.mark.parametrize('name', ['owned', 'owned-tier-a'])
def test_the_memory_of_a_pod_holds_its_slots(name, tmp_path):
    settings, container = settings_of(name, tmp_path), pod_of_gateway(name, tmp_path)['spec']['containers'][0]
    slots, = [int(entry['value']) for entry in container['env'] if entry['name'] == 'CAISSON_ENGINE_RUNNING_MAX']
    number, unit = re.fullmatch(r'(\d+)(MiB|GiB)', settings['limits.memory_bytes']).groups()
    assert slots * int(number) * 2 ** {'MiB': 20, 'GiB': 30}[unit] <= amount(container['resources']['limits']['memory']) - 2 ** 30


def test_the_installer_writes_the_profile_that_workers_name():
    things = built('owned')
    daemon = one(things, 'DaemonSet', 'caisson-seccomp')
    pod, = pods_of(daemon)
    path, = [volume['hostPath']['path'] for volume in pod['volumes'] if 'hostPath' in volume]
    assert path == '/var/lib/kubelet/seccomp' and '/node/caisson.json' in pod['containers'][0]['command'][-1]
    assert one(things, 'Namespace', daemon['metadata']['namespace'])['metadata']['labels']['pod-security.kubernetes.io/enforce'] == 'privileged'


def test_the_installer_replaces_the_file(tmp_path):
    """Its command, with folders of this test."""
    daemon = one(built('owned'), 'DaemonSet', 'caisson-seccomp')
    shell, option, command = pods_of(daemon)[0]['containers'][0]['command']
    (tmp_path / 'profile').mkdir()
    (tmp_path / 'node').mkdir()
    (tmp_path / 'profile/caisson.json').write_text('{}', encoding='utf-8')
    (tmp_path / 'node/caisson.json').write_text('old', encoding='utf-8')
    command = command.replace('/profile/', f'{tmp_path}/profile/').replace('/node/', f'{tmp_path}/node/').replace('exec sleep infinity', 'true')
    subprocess.run([shell, option, command], check=True)
    assert [path.name for path in (tmp_path / 'node').iterdir()] == ['caisson.json'] and (tmp_path / 'node/caisson.json').read_text(encoding='utf-8') == '{}'


# ---- the quota ----

def sum_of(pods):
    found = Counter({'pods': len(pods)})
    for pod in pods:
        for kind in ('requests', 'limits'):
            rows = [container['resources'][kind] for container in pod['containers']]
            for name in rows[0]:
                inits = [container['resources'][kind][name] for container in pod.get('initContainers', [])]
                found[f'{kind}.{name}'] += max(sum(amount(row[name]) for row in rows), *map(amount, inits), 0)
    return found


@pytest.mark.parametrize('name', OVERLAYS)
def test_the_quota_has_room_for_the_whole_pool(name, tmp_path):
    things, settings = built(name), settings_of(name, tmp_path)
    quota = one(things, 'ResourceQuota', 'caisson')['spec']['hard']
    worker = {'containers': [{'resources': {kind: {resource: settings[f'kubernetes.{word}_{kind[:-1]}'] or settings[f'kubernetes.{word}_limit'] if word != 'disk' else settings['kubernetes.disk_limit']
                                                   for resource, word in (('cpu', 'cpu'), ('memory', 'memory'), ('ephemeral-storage', 'disk'))}
                                            for kind in ('requests', 'limits')}}]}
    deployment = one(things, 'Deployment', 'caisson-gateway')['spec']
    gateways = deployment['replicas'] + deployment['strategy']['rollingUpdate']['maxSurge']
    used = sum_of([worker] * int(settings['kubernetes.pool_max']) + [gateway_pod(name)] * gateways)
    for resource, value in used.items():
        assert value <= amount(quota[resource]), f'{resource}: {value}'


# ---- examples ----

def test_examples_name_what_there_is(tmp_path):
    files = {path.stem: load(path)[0] for path in (KUBERNETES / 'examples').glob('*.yaml')}
    things, settings = built('external'), settings_of('external', tmp_path)
    assert set(files) == {'hpa-gateway', 'hpa-workers', 'keda-workers'}
    for thing in files.values():
        assert one(things, 'Deployment', thing['spec']['scaleTargetRef']['name']) and thing['metadata']['namespace'] == 'caisson'
    keda = files['keda-workers']['spec']
    assert (keda['minReplicaCount'], keda['maxReplicaCount']) == (int(settings['kubernetes.pool_min']), int(settings['kubernetes.pool_max']))
    service = one(things, 'Service', 'caisson-gateway')
    url = keda['triggers'][0]['metadata']['url']
    assert url == f'http://caisson-gateway.caisson.svc:{service["spec"]["ports"][0]["port"]}/v1/scale'
    own = Path(ROOT / 'src/gateway/own.c').read_text(encoding='utf-8')
    assert f'"{keda["triggers"][0]["metadata"]["valueLocation"]}"' in own
    assert files['hpa-workers']['spec']['metrics'][0]['external']['metric']['name'] in own


def test_the_policy_pins_what_the_gateway_makes(tmp_path):
    """The texts of the expressions and the pod of the gateway name the same image, account and Secret."""
    policy, binding = load(KUBERNETES / 'components/admission-policy/policy.yaml')
    made = pod_of_gateway('owned', tmp_path)['spec']
    text = json.dumps(policy['spec'])
    assert policy['spec']['variables'][0]['expression'] == f"'{made['containers'][0]['image']}'"
    assert f"serviceAccountName == '{made['serviceAccountName']}'" in text and 'system:serviceaccount:caisson:caisson-gateway' in text
    kinds = [set(volume) - {'name'} for volume in made['volumes']]
    assert all(kind in ({'emptyDir'}, {'secret'}) for kind in kinds) and f"v.secret.secretName == '{KEY_SECRET}'" in text
    assert not any('valueFrom' in variable for variable in made['containers'][0]['env']) and 'initContainers' not in made
    assert binding['spec']['policyName'] == policy['metadata']['name']
    assert binding['spec']['matchResources']['namespaceSelector']['matchLabels'] == {'kubernetes.io/metadata.name': 'caisson'}
