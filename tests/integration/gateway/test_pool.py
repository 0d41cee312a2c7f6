"""Pods that the gateway owns: creation, races, replacement, rolling updates, scaling, with kube-pool-serve and the stub.

    /usr/bin/python3 -m pytest -q tests/integration/gateway/test_pool.py
"""

import subprocess

import pytest
from kube_pool import PROGRAM, KubePool
from kubelet import Census

LABELS = {'app.kubernetes.io/name': 'caisson-worker'}


@pytest.fixture(name='census')
def a_census(stub):
    census = Census(stub)
    yield census
    census.end()


def names(stub):
    return sorted(pod['metadata']['name'] for pod in stub.pods())


def uids(stub):
    return {pod['metadata']['uid'] for pod in stub.pods()}


def has(n):
    """Whether n pods are ready, and no more are there."""
    return lambda state: state['ready'] == n == state['all'] and len(state['workers']) == n


def test_the_minimum_is_made_with_the_lowest_names(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, 'kubernetes.pool_min=3') as gateway:
        state = gateway.wait_for(has(3))
        assert names(stub) == ['w-0', 'w-1', 'w-2'] and state['wanted'] == 3 and state['trouble'] == ''
        pod = stub.pod('w-1')
        assert pod['metadata']['labels'].items() >= LABELS.items() and len(pod['metadata']['annotations']['caisson.dev/template']) == 64
        assert pod['spec']['containers'][0]['image'] == 'caisson:1' and all(request.query['fieldValidation'] == 'Strict' for request in stub.asked(verb='create', resource='pods'))
        assert gateway.stop() == 0
    assert len(stub.pods()) == 3, 'pods outlive a gateway'


def test_three_gateways_never_exceed_the_maximum(stub, kubelet, census, tmp_path):
    """Each wants five at once; the names are the lock."""
    assert kubelet
    stub.delay = {'create': 0.02}
    gateways = [KubePool(stub, tmp_path, 'kubernetes.pool_min=5', 'kubernetes.pool_max=5', name=f'g{i}') for i in range(3)]
    try:
        for gateway in gateways:
            gateway.wait_for(has(5))
        for _ in range(3):
            stub.delete_pod('w-2')
            stub.delete_pod('w-4', grace=0)
            stub.wait_for(lambda: len(stub.pods()) == 5 and all(pod['status'].get('podIP') for pod in stub.pods()), 30)
            for gateway in gateways:
                gateway.wait_for(lambda state: has(5)(state) and {worker['uid'] for worker in state['workers'].values()} == uids(stub))
    finally:
        for gateway in gateways:
            gateway.stop()
    census.end()
    assert census.most <= 5 and census.names == {f'w-{i}' for i in range(5)}
    assert stub.count(verb='create', resource='pods', status=201) == 5 + 6


def test_three_gateways_with_a_wanted_number_below_the_maximum_make_no_more(stub, kubelet, census, tmp_path):
    assert kubelet
    stub.delay = {'create': 0.02}
    gateways = [KubePool(stub, tmp_path, 'kubernetes.pool_min=2', 'kubernetes.pool_max=5', name=f'g{i}') for i in range(3)]
    try:
        for gateway in gateways:
            gateway.wait_for(has(2))
        gateways[0].wait_for(lambda _: any(gateway.state()['leads'] for gateway in gateways))
    finally:
        for gateway in gateways:
            gateway.stop()
    census.end()
    assert census.most <= 3


def test_a_creation_without_an_answer_is_made_once(stub, kubelet, census, tmp_path):
    assert kubelet
    stub.lose_answers(1, verb='create')
    with KubePool(stub, tmp_path, 'kubernetes.pool_min=2') as gateway:
        gateway.wait_for(has(2))
    census.end()
    assert census.most == 2


def test_the_quota_is_told_and_waited_for(stub, kubelet, tmp_path):
    assert kubelet
    stub.quota(pods=2)
    with KubePool(stub, tmp_path, 'kubernetes.pool_min=4', 'pool:hold=300') as gateway:
        state = gateway.wait_for(lambda state: state['ready'] == 2 and state['trouble'])
        assert 'quota' in state['trouble'] and 'kubernetes.pool_max' in state['trouble']
        refused = stub.wait_for(lambda: stub.asked(verb='create', resource='pods', status=403)[:3][2:], notified=False)
        times = [request.time for request in stub.asked(verb='create', resource='pods', status=403)][:3]
        assert refused and all(later - sooner >= 0.29 for sooner, later in zip(times, times[1:]))
        stub.quota(pods=None)
        assert gateway.wait_for(has(4))['trouble'] == ''
        assert gateway.log().count('no worker can be made') == 1


@pytest.mark.parametrize('verb, resource, words', [
    ('create', 'pods', ['may not create pods', 'Role']), ('get', 'leases', ['may not get leases', 'coordination.k8s.io'])])
def test_a_missing_right_is_told(stub, kubelet, tmp_path, verb, resource, words):
    assert kubelet
    stub.forbid(verb, resource)
    with KubePool(stub, tmp_path, 'pool:hold=200') as gateway:
        state = gateway.wait_for(lambda state: state['trouble'])
        assert all(word in state['trouble'] for word in words)
        if resource == 'pods':
            stub.allow(verb, resource)
            assert gateway.wait_for(has(1))['trouble'] == ''
        else:
            assert not gateway.wait_for(has(1))['leads']


def test_a_pod_that_is_refused_names_the_template(stub, kubelet, tmp_path):
    assert kubelet
    template = tmp_path / 'pod.yaml'
    template.write_text('kind: Pod\napiVersion: v1\nspec: {containers: [{name: w, image: x, noSuchField: 1}]}\n')
    with KubePool(stub, tmp_path, f'kubernetes.template_file={template}') as gateway:
        state = gateway.wait_for(lambda state: state['trouble'])
        assert 'noSuchField' in state['trouble'] and 'kubernetes.template_file' in state['trouble']


def test_a_pod_security_level_is_named(stub, tmp_path):
    stub.fail(403, 'Forbidden', 'pods "w-0" is forbidden: violates PodSecurity "restricted:latest": unrestricted capabilities', verb='create', resource='pods')
    with KubePool(stub, tmp_path) as gateway:
        assert 'Pod Security' in gateway.wait_for(lambda state: state['trouble'])['trouble']


def test_an_image_that_cannot_be_pulled_is_told_and_the_pod_made_anew(stub, kubelet, tmp_path):
    kubelet.waiting = ('ImagePullBackOff', 'Back-off pulling image "caisson:1"')
    with KubePool(stub, tmp_path, 'pool:stuck=100', 'pool:lease=500') as gateway:
        state = gateway.wait_for(lambda state: 'ImagePullBackOff' in state['trouble'])
        assert 'kubernetes.image' in state['trouble'] and 'w-0' in state['trouble']
        first = stub.pod('w-0')['metadata']['uid']
        stub.wait_for(lambda: stub.pod('w-0') and stub.pod('w-0')['metadata']['uid'] != first, 30)
        kubelet.waiting = None
        assert gateway.wait_for(has(1))['trouble'] == ''
    deleted = stub.asked(verb='delete', resource='pods')
    assert all(request.body()['preconditions']['uid'] for request in deleted)


def test_a_pod_without_a_node_is_told_and_kept(stub, kubelet, tmp_path):
    kubelet.unschedulable = '0/3 nodes are available: 3 Insufficient cpu.'
    with KubePool(stub, tmp_path, 'pool:stuck=50', 'pool:ready=50', 'pool:lease=300') as gateway:
        state = gateway.wait_for(lambda state: state['leads'] and 'Insufficient cpu' in state['trouble'])
        assert 'finds no node' in state['trouble']
        gateway.wait_for(lambda state: state['leads'])
        assert stub.count(verb='delete', resource='pods') == 0


def test_an_evicted_pod_is_replaced(stub, kubelet, tmp_path):
    with KubePool(stub, tmp_path, 'kubernetes.pool_min=2') as gateway:
        gateway.wait_for(has(2))
        old = stub.pod('w-1')['metadata']['uid']
        kubelet.evict('w-1')
        gateway.wait_news('remove w-1 Evicted')
        gateway.wait_for(lambda state: has(2)(state) and old not in uids(stub))
        assert names(stub) == ['w-0', 'w-1']


def test_a_pod_that_a_person_deletes_is_replaced(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, 'kubernetes.pool_min=2') as gateway:
        gateway.wait_for(has(2))
        old = stub.pod('w-0')['metadata']['uid']
        stub.delete_pod('w-0')
        gateway.wait_for(lambda state: has(2)(state) and old not in uids(stub))


def test_a_node_that_is_lost_costs_its_pod_when_the_worker_is_silent_too(stub, kubelet, tmp_path):
    """Not ready alone is no reason: the worker answers."""
    with KubePool(stub, tmp_path, 'kubernetes.pool_max=2', 'pool:lost=200', 'pool:lease=500') as gateway:
        gateway.wait_for(lambda state: has(1)(state) and state['leads'])
        kubelet.lose_node('node-0')
        gateway.wait_for(lambda state: not state['pods']['w-0']['ready'])
        assert not [request for request in stub.asked(verb='delete', resource='pods')]
        gateway.say('worker w-0 down')
        stub.wait_for(lambda: stub.count(verb='delete', resource='pods', name='w-0'), 30, notified=False)
        kubelet.nodes = ['node-1']
        gateway.wait_for(lambda state: 'w-1' in state['workers'])


def busy(gateway, n, running=4, queued=0, sandboxes=0):
    for i in range(n):
        gateway.say(f'load w-{i} {running} {queued} {sandboxes}')


def test_load_makes_pods_up_to_the_maximum(stub, kubelet, census, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, 'kubernetes.pool_max=4') as gateway:
        gateway.wait_for(has(1))
        busy(gateway, 1, queued=2)
        gateway.wait_for(lambda state: has(3)(state) and state['wanted'] == 3)        # ceil(6 / 0.6 / 4)
        busy(gateway, 3, queued=10)
        gateway.wait_for(has(4))
    census.end()
    assert census.most == 4


def test_a_request_that_waits_makes_the_first_pod(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, 'kubernetes.pool_min=0') as gateway:
        gateway.wait_for(lambda state: state['listed'] and state['leads'])
        assert stub.pods() == []
        gateway.say('wake')
        gateway.wait_for(has(1))


def test_idle_pods_go_one_by_one_to_the_minimum(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, 'pool:lease=500') as gateway:
        gateway.wait_for(has(1))
        busy(gateway, 1, queued=4)
        gateway.wait_for(has(4))
        gateway.say('load w-0 0 0 1')
        state = gateway.wait_for(has(1))
        assert list(state['workers']) == ['w-0'] and state['wanted'] == 1, 'the pod with a sandbox stays'
        marks = [request for request in stub.asked(verb='patch', resource='pods') if request.status == 200]
        assert [request.name for request in marks] == ['w-3', 'w-2', 'w-1']
        assert all(request.body()['metadata']['annotations']['caisson.dev/cordoned'].startswith('scale ') and request.body()['metadata']['resourceVersion']
                   for request in marks)
        assert gateway.news.index('cordon w-3') < gateway.news.index('remove w-3 Deleted')


def test_a_pod_with_sandboxes_is_not_removed_by_scaling(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, 'kubernetes.idle=1s', 'pool:lease=300') as gateway:
        gateway.wait_for(has(1))
        busy(gateway, 1, queued=4)
        gateway.wait_for(has(4))
        busy(gateway, 3, running=0, sandboxes=1)
        state = gateway.wait_for(has(3))
        assert set(state['workers']) == {'w-0', 'w-1', 'w-2'}
        busy(gateway, 2, running=0, sandboxes=0)
        assert set(gateway.wait_for(has(1))['workers']) == {'w-2'}


def test_only_the_holder_of_the_lease_removes_and_another_takes_over(stub, kubelet, tmp_path):
    assert kubelet
    words = ('kubernetes.pool_min=1', 'pool:lease=1000')
    with KubePool(stub, tmp_path, *words, name='first') as first:
        first.wait_for(lambda state: has(1)(state) and state['leads'])
        with KubePool(stub, tmp_path, *words, name='second') as second:
            second.wait_for(has(1))
            for gateway in (first, second):
                busy(gateway, 1, queued=4)
            first.wait_for(has(4))
            second.wait_for(has(4))
            assert not second.state()['leads']
            first.kill()
            second.wait_for(lambda state: state['leads'])
            busy(second, 4, running=0)
            second.wait_for(has(1))
        lease = stub.store.find(next(kind for kind in stub.store.objects if kind.name == 'leases'), 'workers', 'w-pool').value
        assert lease['spec']['leaseTransitions'] == 1


def test_other_gateways_do_not_make_a_removed_pod_anew(stub, kubelet, tmp_path):
    assert kubelet
    words = ('pool:lease=500',)
    with KubePool(stub, tmp_path, *words, name='first') as first, KubePool(stub, tmp_path, *words, name='second') as second:
        both = (first, second)
        for gateway in both:
            gateway.wait_for(has(1))
        for gateway in both:
            busy(gateway, 1, queued=4)
        for gateway in both:
            gateway.wait_for(has(4))
        made = stub.count(verb='create', resource='pods', status=201)
        for gateway in both:
            busy(gateway, 4, running=0)
        for gateway in both:
            assert gateway.wait_for(has(1))['wanted'] == 1
        assert stub.count(verb='create', resource='pods', status=201) == made == 4


def test_a_new_template_replaces_all_pods_without_a_gap(stub, kubelet, census, tmp_path):
    """Surge 25 % of 4: one pod more, and never fewer than four ready."""
    assert kubelet
    with KubePool(stub, tmp_path, 'kubernetes.pool_min=4', 'kubernetes.pool_max=6', name='old') as gateway:
        gateway.wait_for(has(4))
    old, counts = uids(stub), []
    with KubePool(stub, tmp_path, 'kubernetes.pool_min=4', 'kubernetes.pool_max=6', 'kubernetes.image=caisson:2', 'pool:lease=500', name='new') as gateway:
        gateway.wait_for(has(4))

        def rolled(state):
            counts.append(sum(1 for worker in state['workers'].values() if not worker['cordoned']))
            return has(4)(state) and not old & uids(stub)
        gateway.wait_for(rolled, 60)
        assert min(counts) >= 4 and {pod['spec']['containers'][0]['image'] for pod in stub.pods()} == {'caisson:2'}
    census.end()
    assert census.most <= 6


def test_a_full_pool_is_replaced_within_the_surge(stub, kubelet, census, tmp_path):
    assert kubelet
    words = ('kubernetes.pool_min=4', 'kubernetes.pool_max=4')
    with KubePool(stub, tmp_path, *words, name='old') as gateway:
        gateway.wait_for(has(4))
    old, counts = uids(stub), []
    with KubePool(stub, tmp_path, *words, 'kubernetes.memory_limit=5Gi', 'pool:lease=500', name='new') as gateway:
        gateway.wait_for(has(4))

        def rolled(state):
            counts.append(sum(1 for worker in state['workers'].values() if not worker['cordoned']))
            return has(4)(state) and not old & uids(stub)
        gateway.wait_for(rolled, 60)
        assert min(counts) >= 3
    census.end()
    assert census.most == 4


def test_a_rolled_pod_is_drained_first(stub, kubelet, tmp_path):
    """It stays as long as it has sandboxes; the pod with the fewest goes first."""
    assert kubelet
    with KubePool(stub, tmp_path, 'kubernetes.pool_min=2', name='old') as gateway:
        gateway.wait_for(has(2))
    first, second = (stub.pod(name)['metadata']['uid'] for name in ('w-0', 'w-1'))
    with KubePool(stub, tmp_path, 'kubernetes.pool_min=2', 'kubernetes.image=caisson:2', 'pool:lease=1500', name='new') as gateway:
        gateway.wait_for(has(2))
        gateway.say('load w-0 0 0 3')
        gateway.say('load w-1 0 0 1')
        gateway.wait_news('cordon w-1')
        gateway.wait_for(lambda state: state['all'] == 3)
        assert {first, second} <= uids(stub) and 'cordon w-0' not in gateway.news
        gateway.say('load w-1 0 0 0')
        gateway.wait_for(lambda _: second not in uids(stub))
        assert gateway.wait_news('cordon w-0') and first in uids(stub)
        gateway.say('load w-0 0 0 0')
        gateway.wait_for(lambda state: has(2)(state) and first not in uids(stub))


def test_the_grace_ends_a_drain(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, name='old') as gateway:
        gateway.wait_for(has(1))
    old = uids(stub)
    with KubePool(stub, tmp_path, 'kubernetes.image=caisson:2', 'kubernetes.grace=1', 'pool:lease=500', name='new') as gateway:
        gateway.wait_for(has(1))
        gateway.say('load w-0 0 0 1')
        gateway.wait_news('cordon w-0')
        gateway.wait_for(lambda state: has(1)(state) and not old & uids(stub))


def test_a_conflict_of_the_mark_is_tried_again(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, name='old') as gateway:
        gateway.wait_for(has(1))
    stub.fail(409, 'Conflict', 'the object has been modified', times=2, verb='patch')
    with KubePool(stub, tmp_path, 'kubernetes.image=caisson:2', 'pool:lease=500', name='new') as gateway:
        gateway.wait_for(lambda state: has(1)(state) and stub.pods()[0]['spec']['containers'][0]['image'] == 'caisson:2', 60)
        assert stub.count(verb='patch', status=409) == 2


def test_a_cordon_of_a_person_is_left_alone(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, 'kubernetes.pool_min=2', 'pool:lease=300') as gateway:
        gateway.wait_for(lambda state: has(2)(state) and state['leads'])
        stub.edit_pod('w-0', lambda pod: pod['metadata']['annotations'].update({'caisson.dev/cordoned': 'true'}))
        gateway.wait_for(lambda state: state['ready'] == 1 and state['leads'])
        assert stub.count(verb='delete', resource='pods') == 0 and len(stub.pods()) == 2


def test_pods_beyond_a_lower_maximum_go(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, 'kubernetes.pool_min=4', name='old') as gateway:
        gateway.wait_for(has(4))
    with KubePool(stub, tmp_path, 'kubernetes.pool_min=1', 'kubernetes.pool_max=2', 'pool:lease=300', name='new') as gateway:
        gateway.wait_for(lambda state: state['listed'] and state['all'] <= 2)
        assert set(names(stub)) <= {'w-0', 'w-1'}


def test_a_name_of_another_program_is_told_and_passed_over(stub, kubelet, tmp_path):
    assert kubelet
    stub.create_pod('w-0', {'app': 'other'})
    with KubePool(stub, tmp_path, 'pool:expected=50', 'pool:hold=60000') as gateway:
        gateway.wait_for(has(1))
        state = gateway.state()
        assert set(state['workers']) == {'w-1'} and 'w-0' in state['trouble'] and 'kubernetes.selector' in state['trouble']


def test_nothing_is_made_or_removed_without_the_server(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, 'kube:backoff=20') as gateway:
        gateway.wait_for(has(1))
        stub.stop()
        gateway.wait_for(lambda state: not state['connected'])
        busy(gateway, 1, queued=4)
        gateway.wait_for(lambda state: state['wanted'] == 4)
        before = stub.count(verb='create', resource='pods')
        stub.start()
        gateway.wait_for(has(4))
        assert stub.count(verb='create', resource='pods', status=201) == before + 3


def test_a_lost_watch_makes_no_pod_twice(stub, kubelet, census, tmp_path):
    """The watch breaks again and again while pods are made and deleted."""
    assert kubelet
    with KubePool(stub, tmp_path, 'kubernetes.pool_min=3', 'kubernetes.pool_max=3', 'kube:backoff=10') as gateway:
        gateway.wait_for(has(3))
        for i in range(20):
            stub.delete_pod(f'w-{i % 3}', grace=0)
            (stub.error_watches if i % 4 == 0 else stub.cut_watches)()
            gateway.wait_for(lambda state: has(3)(state) and {worker['uid'] for worker in state['workers'].values()} == uids(stub))
    census.end()
    assert census.most == 3


@pytest.mark.parametrize('words, expected', [(['kubernetes.image='], 'kubernetes.image'), (['kubernetes.selector=a in (b)'], 'kubernetes.selector'),
                                             (['kubernetes.template_file=/none'], 'kubernetes.template_file')])
def test_a_wrong_setting_prevents_the_start(words, expected, stub, tmp_path):
    account = stub.service_account(tmp_path / 'account')
    done = subprocess.run([PROGRAM, 'kubernetes.mode=owned', f'kubernetes.api_url={stub.url}', f'kubernetes.token_file={account}/token', *words],
                          env={'HOME': str(tmp_path)}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and expected in done.stderr
