"""What the stub of a Kubernetes API server knows of the members of its objects: types, defaults, validation.

A type is a letter (s string, i integer, b boolean, q quantity, x integer or string, * anything), a list of one type,
a dictionary of members, or a dictionary with the only name '' for a map.  The members are those of Kubernetes 1.32;
SINCE has the version of a member that an older server does not know.
"""

import re

DNS_LABEL = r'[a-z0-9]([-a-z0-9]*[a-z0-9])?'
DNS_SUBDOMAIN = rf'{DNS_LABEL}(\.{DNS_LABEL})*'
MAP = {'': 's'}
SELECTOR = {'matchLabels': MAP, 'matchExpressions': [{'key': 's', 'operator': 's', 'values': ['s']}]}
METADATA = {'name': 's', 'generateName': 's', 'namespace': 's', 'selfLink': 's', 'uid': 's', 'resourceVersion': 's',
            'generation': 'i', 'creationTimestamp': 's', 'deletionTimestamp': 's', 'deletionGracePeriodSeconds': 'i',
            'labels': MAP, 'annotations': MAP, 'ownerReferences': [{'apiVersion': 's', 'kind': 's', 'name': 's',
                                                                    'uid': 's', 'controller': 'b',
                                                                    'blockOwnerDeletion': 'b'}], 'finalizers': ['s'],
            'managedFields': ['*']}
HTTP_GET = {'path': 's', 'port': 'x', 'host': 's', 'scheme': 's', 'httpHeaders': [{'name': 's', 'value': 's'}]}
HANDLER = {'exec': {'command': ['s']}, 'httpGet': HTTP_GET, 'tcpSocket': {'port': 'x', 'host': 's'},
           'sleep': {'seconds': 'i'}}
PROBE = {**HANDLER, 'grpc': {'port': 'i', 'service': 's'}, 'initialDelaySeconds': 'i', 'timeoutSeconds': 'i',
         'periodSeconds': 'i', 'successThreshold': 'i', 'failureThreshold': 'i', 'terminationGracePeriodSeconds': 'i'}
PROFILE = {'type': 's', 'localhostProfile': 's'}
SECURITY = {'seccompProfile': PROFILE, 'appArmorProfile': PROFILE,
            'seLinuxOptions': {'user': 's', 'role': 's', 'type': 's', 'level': 's'}, 'windowsOptions': '*',
            'runAsUser': 'i', 'runAsGroup': 'i', 'runAsNonRoot': 'b'}
KEY_OF = {'name': 's', 'key': 's', 'optional': 'b'}
ITEMS = [{'key': 's', 'path': 's', 'mode': 'i'}]
FIELD = {'apiVersion': 's', 'fieldPath': 's'}
RESOURCE_FIELD = {'containerName': 's', 'resource': 's', 'divisor': 'q'}
RESOURCES = {'requests': {'': 'q'}, 'limits': {'': 'q'}, 'claims': ['*']}
CONTAINER = {'name': 's', 'image': 's', 'command': ['s'], 'args': ['s'], 'workingDir': 's', 'imagePullPolicy': 's',
             'resources': RESOURCES, 'restartPolicy': 's',
             'ports': [{'name': 's', 'hostPort': 'i', 'containerPort': 'i', 'protocol': 's', 'hostIP': 's'}],
             'env': [{'name': 's', 'value': 's', 'valueFrom': {'fieldRef': FIELD, 'resourceFieldRef': RESOURCE_FIELD,
                                                               'configMapKeyRef': KEY_OF, 'secretKeyRef': KEY_OF}}],
             'envFrom': [{'prefix': 's', 'configMapRef': {'name': 's', 'optional': 'b'},
                          'secretRef': {'name': 's', 'optional': 'b'}}],
             'volumeMounts': [{'name': 's', 'readOnly': 'b', 'mountPath': 's', 'subPath': 's', 'mountPropagation': 's',
                               'subPathExpr': 's', 'recursiveReadOnly': 's'}],
             'volumeDevices': [{'name': 's', 'devicePath': 's'}], 'livenessProbe': PROBE, 'readinessProbe': PROBE,
             'startupProbe': PROBE, 'lifecycle': {'postStart': HANDLER, 'preStop': HANDLER, 'stopSignal': 's'},
             'terminationMessagePath': 's', 'terminationMessagePolicy': 's',
             'securityContext': {**SECURITY, 'capabilities': {'add': ['s'], 'drop': ['s']}, 'privileged': 'b',
                                 'readOnlyRootFilesystem': 'b', 'allowPrivilegeEscalation': 'b', 'procMount': 's'},
             'stdin': 'b', 'stdinOnce': 'b', 'tty': 'b', 'resizePolicy': ['*']}
PROJECTED = {'secret': {'name': 's', 'items': ITEMS, 'optional': 'b'},
             'configMap': {'name': 's', 'items': ITEMS, 'optional': 'b'},
             'downwardAPI': {'items': [{'path': 's', 'fieldRef': FIELD, 'resourceFieldRef': RESOURCE_FIELD,
                                        'mode': 'i'}]},
             'serviceAccountToken': {'audience': 's', 'expirationSeconds': 'i', 'path': 's'}, 'clusterTrustBundle': '*'}
VOLUME = {'name': 's', 'emptyDir': {'medium': 's', 'sizeLimit': 'q'}, 'hostPath': {'path': 's', 'type': 's'},
          'secret': {'secretName': 's', 'items': ITEMS, 'defaultMode': 'i', 'optional': 'b'},
          'configMap': {'name': 's', 'items': ITEMS, 'defaultMode': 'i', 'optional': 'b'},
          'downwardAPI': {'items': PROJECTED['downwardAPI']['items'], 'defaultMode': 'i'},
          'projected': {'sources': [PROJECTED], 'defaultMode': 'i'},
          'persistentVolumeClaim': {'claimName': 's', 'readOnly': 'b'}, 'csi': '*', 'ephemeral': '*', 'nfs': '*',
          'image': '*', 'iscsi': '*'}
POD_SPEC = {'volumes': [VOLUME], 'initContainers': [CONTAINER], 'containers': [CONTAINER], 'ephemeralContainers': ['*'],
            'restartPolicy': 's', 'terminationGracePeriodSeconds': 'i', 'activeDeadlineSeconds': 'i', 'dnsPolicy': 's',
            'nodeSelector': MAP, 'serviceAccountName': 's', 'serviceAccount': 's', 'automountServiceAccountToken': 'b',
            'nodeName': 's', 'hostNetwork': 'b', 'hostPID': 'b', 'hostIPC': 'b', 'shareProcessNamespace': 'b',
            'imagePullSecrets': [{'name': 's'}], 'hostname': 's', 'subdomain': 's', 'affinity': '*',
            'schedulerName': 's', 'securityContext': {**SECURITY, 'supplementalGroups': ['i'],
                                                      'supplementalGroupsPolicy': 's', 'fsGroup': 'i',
                                                      'sysctls': [{'name': 's', 'value': 's'}],
                                                      'fsGroupChangePolicy': 's', 'seLinuxChangePolicy': 's'},
            'tolerations': [{'key': 's', 'operator': 's', 'value': 's', 'effect': 's', 'tolerationSeconds': 'i'}],
            'hostAliases': [{'ip': 's', 'hostnames': ['s']}], 'priorityClassName': 's', 'priority': 'i',
            'preemptionPolicy': 's', 'dnsConfig': '*', 'readinessGates': [{'conditionType': 's'}],
            'runtimeClassName': 's', 'enableServiceLinks': 'b', 'overhead': {'': 'q'}, 'setHostnameAsFQDN': 'b',
            'topologySpreadConstraints': [{'maxSkew': 'i', 'topologyKey': 's', 'whenUnsatisfiable': 's',
                                           'labelSelector': SELECTOR, 'minDomains': 'i', 'nodeAffinityPolicy': 's',
                                           'nodeTaintsPolicy': 's', 'matchLabelKeys': ['s']}], 'os': {'name': 's'},
            'hostUsers': 'b', 'schedulingGates': [{'name': 's'}], 'resourceClaims': ['*'], 'resources': RESOURCES}
SPECS = {'Pod': POD_SPEC, 'Lease': {'holderIdentity': 's', 'leaseDurationSeconds': 'i', 'acquireTime': 's',
                                    'renewTime': 's', 'leaseTransitions': 'i', 'strategy': 's', 'preferredHolder': 's'}}
# By the last two names of the path.
SINCE = {'spec.hostUsers': (1, 25), 'spec.os': (1, 23), 'spec.schedulingGates': (1, 26), 'spec.resourceClaims': (1, 26),
         'spec.resources': (1, 32), 'securityContext.appArmorProfile': (1, 30), 'volumes.image': (1, 31),
         'securityContext.supplementalGroupsPolicy': (1, 31), 'topologySpreadConstraints.minDomains': (1, 24),
         'topologySpreadConstraints.nodeAffinityPolicy': (1, 25), 'topologySpreadConstraints.nodeTaintsPolicy': (1, 25),
         'topologySpreadConstraints.matchLabelKeys': (1, 25), 'spec.strategy': (1, 31), 'spec.preferredHolder': (1, 31),
         'startupProbe.grpc': (1, 23), 'readinessProbe.grpc': (1, 23), 'livenessProbe.grpc': (1, 23)}
GO_TYPES = {'s': 'string', 'i': 'int32', 'b': 'bool'}
TESTS = {'s': lambda value: isinstance(value, str), 'b': lambda value: isinstance(value, bool), '*': lambda value: True,
         'i': lambda value: isinstance(value, int) and not isinstance(value, bool),
         'q': lambda value: isinstance(value, (int, float))
         or re.fullmatch(r'[+-]?[0-9.]+([eE][+-]?[0-9]+|[numkMGTPE]i?|Ki)?', value),
         'x': lambda value: isinstance(value, (int, str))}


def members_of(kind):
    return {'kind': 's', 'apiVersion': 's', 'metadata': METADATA, 'spec': SPECS.get(kind, '*'), 'status': '*'}


def walk(value, shape, path, version, wrong, unknown):
    """Append messages of wrong types, and (message, holder, name) of unknown members; null is absent."""
    if isinstance(shape, str):
        if value is not None and not TESTS[shape](value):
            wrong.append(
                f'json: cannot unmarshal {kind_of(value)} into Go struct field {path} '
                f'of type {GO_TYPES.get(shape, shape)}')
    elif isinstance(shape, list):
        if not isinstance(value, list):
            if value is not None:
                wrong.append(f'json: cannot unmarshal {kind_of(value)} into Go struct field {path} of type []')
            return
        for at, item in enumerate(value):
            walk(item, shape[0], f'{path}[{at}]', version, wrong, unknown)
    elif not isinstance(value, dict):
        if value is not None:
            wrong.append(f'json: cannot unmarshal {kind_of(value)} into Go struct field {path}')
    else:
        for name, part in value.items():
            inner = f'{path}.{name}' if path else name
            if '' in shape:
                walk(part, shape[''], inner, version, wrong, unknown)
            elif name in shape and is_known(inner, version):
                walk(part, shape[name], inner, version, wrong, unknown)
            else:
                unknown.append((f'unknown field "{inner}"', value, name))


def is_known(path, version):
    return SINCE.get(re.sub(r'\[\d+\]', '', '.'.join(path.split('.')[-2:])), version) <= version


def kind_of(value):
    return {bool: 'bool', str: 'string', list: 'array', dict: 'object'}.get(type(value), 'number')


def check(kind, value, strict, version, error):
    """Raise error(message) for wrong types; remove unknown members, or raise for these too.

    Returns the messages of unknown members.
    """
    wrong, unknown = [], []
    walk(value, members_of(kind), '', version, wrong, unknown)
    if wrong:
        raise error(f'{kind} in version "v1" cannot be handled as a {kind}: {wrong[0]}')
    if strict and unknown:
        raise error('strict decoding error: ' + ', '.join(message for message, _, _ in unknown))
    for _, holder, name in unknown:
        del holder[name]
    return [message for message, _, _ in unknown]


# ---- defaults ----

CONTAINER_DEFAULTS = {'terminationMessagePath': '/dev/termination-log', 'terminationMessagePolicy': 'File'}
POD_DEFAULTS = {'restartPolicy': 'Always', 'terminationGracePeriodSeconds': 30, 'dnsPolicy': 'ClusterFirst',
                'schedulerName': 'default-scheduler', 'enableServiceLinks': True,
                'preemptionPolicy': 'PreemptLowerPriority', 'priority': 0}
PROBE_DEFAULTS = {'timeoutSeconds': 1, 'periodSeconds': 10, 'successThreshold': 1, 'failureThreshold': 3}
TOLERATIONS = [{'key': f'node.kubernetes.io/{key}', 'operator': 'Exists', 'effect': 'NoExecute',
                'tolerationSeconds': 300} for key in ('not-ready', 'unreachable')]


def with_defaults(value, defaults):
    for name, part in defaults.items():
        if value.get(name) is None:
            value[name] = part


def with_nulls(value, names):
    """Times that are absent are null in answers."""
    for name in names if value is not None else ():
        value.setdefault(name, None)


def fill(kind, value):
    """The defaults that the API server writes into an object."""
    if kind == 'Namespace':
        value.setdefault('spec', {}).setdefault('finalizers', ['kubernetes'])
        value.setdefault('status', {}).setdefault('phase', 'Active')
    elif kind == 'Node':
        value.setdefault('spec', {})
        value.setdefault('status', {})
    elif kind == 'ResourceQuota':
        value.setdefault('status', {})
    elif kind == 'Pod' and isinstance(value.get('spec'), dict):
        fill_pod(value)


def fill_pod(value):
    spec = value['spec']
    with_defaults(spec, {**POD_DEFAULTS, 'securityContext': {}, 'tolerations': list(TOLERATIONS)})
    if not spec['tolerations']:
        spec['tolerations'] = list(TOLERATIONS)
    for container in [*(spec.get('containers') or []), *(spec.get('initContainers') or [])]:
        with_defaults(container, {**CONTAINER_DEFAULTS, 'resources': {}})
        image = container.get('image', '')
        latest = ':' not in image.rpartition('/')[2] or image.endswith(':latest')
        with_defaults(container, {'imagePullPolicy': 'Always' if latest and '@' not in image else 'IfNotPresent'})
        for port in container.get('ports') or []:
            with_defaults(port, {'protocol': 'TCP'})
        for name in ('livenessProbe', 'readinessProbe', 'startupProbe'):
            if probe := container.get(name):
                with_defaults(probe, PROBE_DEFAULTS)
                if 'httpGet' in probe:
                    with_defaults(probe['httpGet'], {'path': '/', 'scheme': 'HTTP'})
        resources = container['resources']
        if resources.get('limits'):
            resources['requests'] = {**resources['limits'], **(resources.get('requests') or {})}
    status = value.setdefault('status', {})
    for condition in status.get('conditions') or []:
        with_nulls(condition, ('lastProbeTime', 'lastTransitionTime'))
    for container in status.get('containerStatuses') or []:
        container.setdefault('lastState', {})
        for state in (container.get('state') or {}).get('running'), container['lastState'].get('running'):
            with_nulls(state, ('startedAt',))
    status.setdefault('phase', 'Pending')
    status.setdefault('qosClass', quality_of(spec))


def quality_of(spec):
    resources = [container['resources'] for container in spec.get('containers') or []]
    if not any(one.get('requests') or one.get('limits') for one in resources):
        return 'BestEffort'
    full = all({'cpu', 'memory'} <= set(one.get('limits') or {}) and one['limits'] == one['requests']
               for one in resources)
    return 'Guaranteed' if full else 'Burstable'


# ---- validation ----


def problems(kind, value):
    """[(field, reason, message)]"""
    found = []
    name = value['metadata'].get('name')
    pattern, word = (DNS_LABEL, 'label') if kind == 'Namespace' else (DNS_SUBDOMAIN, 'subdomain')
    if not name:
        found.append(('metadata.name', 'FieldValueRequired',
                      'Required value: name or generateName is required'))
    elif not re.fullmatch(pattern, name) or len(name) > (63 if word == 'label' else 253):
        found.append(bad_value('metadata.name', name,
                               f'a DNS-1123 {word} must consist of lower case alphanumeric characters, \'-\' or \'.\', '
                               'and must start and end with an alphanumeric character'))
    for key, text in (value['metadata'].get('labels') or {}).items():
        if not re.fullmatch(r'([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?', text):
            found.append(bad_value('metadata.labels', text,
                                   'a valid label must be an empty string or consist of alphanumeric characters'))
        if not re.fullmatch(rf'({DNS_SUBDOMAIN}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?', key):
            found.append(bad_value('metadata.labels', key, 'name part must consist of alphanumeric characters'))
    if kind == 'Pod':
        found += pod_problems(value.get('spec') or {})
    return found


def bad_value(field, value, message):
    return field, 'FieldValueInvalid', f'Invalid value: "{value}": {message}'


def required(field):
    return field, 'FieldValueRequired', 'Required value'


def pod_problems(spec):
    found = []
    if not spec.get('containers'):
        found.append(required('spec.containers'))
    volumes = {volume.get('name') for volume in spec.get('volumes') or []}
    names = set()
    for at, container in enumerate(spec.get('containers') or []):
        path = f'spec.containers[{at}]'
        name = container.get('name')
        if not name:
            found.append(required(f'{path}.name'))
        elif not re.fullmatch(DNS_LABEL, name):
            found.append(bad_value(f'{path}.name', name,
                                   'a DNS-1123 label must consist of lower case alphanumeric characters or \'-\''))
        elif name in names:
            found.append((f'{path}.name', 'FieldValueDuplicate', f'Duplicate value: "{name}"'))
        names.add(name)
        if not container.get('image'):
            found.append(required(f'{path}.image'))
        for number, mount in enumerate(container.get('volumeMounts') or []):
            if mount.get('name') not in volumes:
                found.append((f'{path}.volumeMounts[{number}].name', 'FieldValueNotFound',
                              f'Not found: "{mount.get("name")}"'))
        for number, port in enumerate(container.get('ports') or []):
            if not 0 < port.get('containerPort', 0) < 65536:
                found.append(bad_value(f'{path}.ports[{number}].containerPort', port.get('containerPort', 0),
                                       'must be between 1 and 65535, inclusive'))
        for resource, limit in (container['resources'].get('limits') or {}).items():
            if amount((container['resources'].get('requests') or {}).get(resource, limit)) > amount(limit):
                found.append(bad_value(f'{path}.resources.requests', container['resources']['requests'][resource],
                                       f'must be less than or equal to {resource} limit'))
    for field, allowed in (('restartPolicy', ('Always', 'OnFailure', 'Never')),
                           ('dnsPolicy', ('ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'))):
        if spec.get(field) and spec[field] not in allowed:
            found.append((f'spec.{field}', 'FieldValueNotSupported',
                          f'Unsupported value: "{spec[field]}": supported values: '
                          + ', '.join(f'"{one}"' for one in sorted(allowed))))
    return found


def amount(quantity):
    number, unit = re.fullmatch(r'([+-]?[0-9.]+)(.*)', str(quantity)).groups()
    scale = {'': 1, 'n': 1e-9, 'u': 1e-6, 'm': 1e-3, 'k': 1e3, 'M': 1e6, 'G': 1e9, 'T': 1e12, 'P': 1e15, 'E': 1e18,
             'Ki': 2**10, 'Mi': 2**20, 'Gi': 2**30, 'Ti': 2**40, 'Pi': 2**50, 'Ei': 2**60}
    return float(number + unit) if unit[:1] in ('e', 'E') and unit[1:] not in ('', 'i') else float(number) * scale[unit]


def forbidden_changes(kind, old, new):
    """A pod's spec is fixed, but for images and the deadline."""
    if kind != 'Pod' or not (old.get('spec') and new.get('spec')):
        return []

    def fixed(spec):
        spec = {**spec, 'activeDeadlineSeconds': None, 'tolerations': None}
        for name in ('containers', 'initContainers'):
            spec[name] = [{**container, 'image': None} for container in spec.get(name) or []]
        return spec

    if fixed(old['spec']) == fixed(new['spec']):
        return []
    return [('spec', 'FieldValueForbidden',
             'Forbidden: pod updates may not change fields other than `spec.containers[*].image`, '
             '`spec.initContainers[*].image`, `spec.activeDeadlineSeconds` or `spec.tolerations` '
             '(only additions to existing tolerations)')]
