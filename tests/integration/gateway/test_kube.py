"""Pods as workers: list, watch and the faults of an API server, with the program kube-pool-serve and the stub.

    /usr/bin/python3 -m pytest -q tests/integration/gateway/test_kube.py
"""

import subprocess

import pytest
from kube_pool import PROGRAM, KubePool
from kube_stub import KubeStub
from kubelet import Kubelet

LABELS = {'app.kubernetes.io/name': 'caisson-worker'}
QUICK = ('kube:backoff=20',)


@pytest.fixture(name='gateway')
def a_gateway(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, *QUICK, mode='external') as gateway:
        gateway.wait_for(lambda state: state['listed'])
        yield gateway


def uid(stub, name):
    return stub.pod(name)['metadata']['uid']


def lists(stub):
    return stub.count(verb='list', status=200)


def watches(stub):
    return stub.count(verb='watch')


def test_pods_with_the_label_are_workers(stub, gateway):
    for name in ('a', 'b'):
        stub.create_pod(name, LABELS)
    stub.create_pod('other', {'app': 'other'})
    state = gateway.wait_for(lambda state: len(state['workers']) == 2)
    assert state['workers']['a']['uid'] == uid(stub, 'a') and state['workers']['a']['url'] == f'http://{stub.pod("a")["status"]["podIP"]}:8080'
    assert 'other' not in state['pods'] and state['connected'] and lists(stub) == 1
    first, watch = stub.asked(verb='list')[0], stub.asked(verb='watch')[0]
    assert first.query == {'labelSelector': 'app.kubernetes.io/name=caisson-worker', 'resourceVersion': '0'}
    assert watch.flag('allowWatchBookmarks') and watch.query['timeoutSeconds'] == '290'


def test_a_thousand_pods_come_in_one_list(stub, tmp_path):
    for i in range(1000):
        stub.create_pod(f'n-{i}', LABELS)
        stub.edit_pod(f'n-{i}', lambda pod, i=i: pod['status'].update(phase='Running', podIP=f'10.0.{i // 250}.{i % 250 + 1}'))
    with KubePool(stub, tmp_path, mode='external') as gateway:
        gateway.wait_for(lambda state: len(state['workers']) == 1000)
        assert lists(stub) == 1
        with open(f'/proc/{gateway.process.pid}/status', encoding='ascii') as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith('VmHWM'))
        assert peak < 60 * 1024, f'{peak} KiB'


def test_a_pod_without_an_address_is_no_worker_yet(stub, kubelet, gateway):
    kubelet.waiting = ('ImagePullBackOff', 'no such image')
    stub.create_pod('a', LABELS)
    state = gateway.wait_for(lambda state: state['pods'].get('a', {}).get('waiting') == 'ImagePullBackOff')
    assert not state['workers']
    kubelet.waiting = None
    kubelet.retry()
    gateway.wait_for(lambda state: 'a' in state['workers'])


def test_a_deleted_pod_is_cordoned_and_then_removed(stub, kubelet, gateway):
    kubelet.end_delay = 0.3
    stub.create_pod('a', LABELS)
    gateway.wait_for(lambda state: 'a' in state['workers'])
    stub.delete_pod('a')
    gateway.wait_news('cordon a')
    gateway.wait_news('remove a Deleted')
    assert gateway.news.index('cordon a') < gateway.news.index('remove a Deleted')
    assert gateway.state()['pods'] == {}


def test_an_annotation_cordons_and_uncordons(stub, gateway):
    stub.create_pod('a', LABELS)
    gateway.wait_for(lambda state: 'a' in state['workers'])
    stub.edit_pod('a', lambda pod: pod['metadata'].setdefault('annotations', {}).update({'caisson.dev/cordoned': 'true'}))
    gateway.wait_for(lambda state: state['workers']['a']['cordoned'])
    stub.edit_pod('a', lambda pod: pod['metadata']['annotations'].pop('caisson.dev/cordoned'))
    gateway.wait_for(lambda state: not state['workers']['a']['cordoned'])


def test_a_restart_has_its_reason(stub, kubelet, gateway):
    stub.create_pod('a', LABELS)
    gateway.wait_for(lambda state: 'a' in state['workers'])
    kubelet.kill('a', 'OOMKilled')
    gateway.wait_news('restarted a OOMKilled')
    assert gateway.news.count('restarted a OOMKilled') == 1


def test_an_evicted_pod_is_removed_with_its_reason(stub, kubelet, gateway):
    stub.create_pod('a', LABELS)
    gateway.wait_for(lambda state: 'a' in state['workers'])
    kubelet.evict('a')
    gateway.wait_news('remove a Evicted')
    assert 'a' in gateway.state()['pods']


def test_a_pod_of_a_lost_node_says_so_at_its_end(stub, kubelet, gateway):
    stub.create_pod('a', LABELS)
    gateway.wait_for(lambda state: 'a' in state['workers'])
    kubelet.lose_node('node-0')
    gateway.wait_for(lambda state: state['pods']['a']['reason'] == 'NodeLost' and 'a' in state['workers'])
    stub.delete_pod('a', grace=0)
    gateway.wait_news('remove a NodeLost')


def test_the_same_name_with_another_uid_is_another_worker(stub, gateway):
    stub.create_pod('a', LABELS)
    gateway.wait_for(lambda state: 'a' in state['workers'])
    old = uid(stub, 'a')
    stub.replace_pod('a')
    gateway.wait_for(lambda state: state['workers'].get('a', {}).get('uid') == uid(stub, 'a') != old)
    assert [line for line in gateway.news if line.split()[0] in ('add', 'remove')] == [f'add a {old}', 'remove a Deleted', f'add a {uid(stub, "a")}']


@pytest.mark.parametrize('middle', [False, True])
def test_a_cut_watch_goes_on_where_it_was(stub, gateway, middle):
    stub.create_pod('a', LABELS)
    gateway.wait_for(lambda state: 'a' in state['workers'])
    for i in range(5):
        stub.cut_watches(middle)
        stub.create_pod(f'b-{i}', LABELS)
        gateway.wait_for(lambda state, name=f'b-{i}': name in state['workers'])
    assert lists(stub) == 1 and watches(stub) >= 6 and not [line for line in gateway.news if line.startswith('remove')]


def test_events_of_the_gap_come_with_the_next_watch(stub, gateway):
    stub.create_pod('a', LABELS)
    gateway.wait_for(lambda state: 'a' in state['workers'])
    stub.hold_events()
    stub.delete_pod('a', grace=0)
    stub.create_pod('b', LABELS)
    stub.cut_watches()
    stub.wait_for(lambda: watches(stub) >= 2, notified=False)
    assert set(gateway.state()['workers']) == {'a'}
    stub.release_events()
    gateway.wait_for(lambda state: set(state['workers']) == {'b'})
    assert lists(stub) == 1


@pytest.mark.parametrize('fault', ['event', 'answer'])
def test_an_expired_revision_lists_again(stub, gateway, fault):
    stub.create_pod('a', LABELS)
    stub.create_pod('b', LABELS)
    gateway.wait_for(lambda state: len(state['workers']) == 2)
    stub.hold_events()
    stub.delete_pod('a', grace=0)
    stub.create_pod('c', LABELS)
    if fault == 'event':
        stub.error_watches()
    else:
        stub.fail(410, 'Expired', 'too old resource version', verb='watch')
        stub.cut_watches()
    gateway.wait_for(lambda state: set(state['pods']) == {'b', 'c'})
    stub.release_events()
    gateway.wait_for(lambda state: set(state['workers']) == {'b', 'c'})
    assert lists(stub) == 2 and 'remove a Deleted' in gateway.news and not any(line.startswith('remove b') for line in gateway.news)
    assert 'resourceVersion' not in stub.asked(verb='list')[1].query


def test_a_server_that_expires_every_watch_is_not_stormed(stub, gateway):
    stub.error_next_watches(4)
    stub.cut_watches()
    stub.create_pod('a', LABELS)
    gateway.wait_for(lambda state: 'a' in state['workers'])
    assert lists(stub) <= 6


def test_bookmarks_move_the_revision(stub, gateway):
    stub.create_pod('other', {'app': 'other'})
    revision = stub.store.revision
    stub.send_bookmarks()
    stub.cut_watches()
    stub.wait_for(lambda: watches(stub) >= 2, notified=False)
    assert int(stub.asked(verb='watch')[-1].query['resourceVersion']) >= revision
    assert gateway.state()['connected'] and lists(stub) == 1


def test_a_silent_watch_is_replaced(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, 'kube:silent=300', *QUICK, mode='external') as gateway:
        gateway.wait_for(lambda state: state['listed'])
        stub.wait_for(lambda: watches(stub) >= 3, notified=False)
        stub.create_pod('a', LABELS)
        gateway.wait_for(lambda state: 'a' in state['workers'])
        assert gateway.state()['connected'] and lists(stub) == 1


def test_a_silent_server_is_told_and_workers_stay(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, 'kube:silent=300', 'kube:request=200', *QUICK, mode='external') as gateway:
        stub.create_pod('a', LABELS)
        gateway.wait_for(lambda state: 'a' in state['workers'])
        stub.silence()
        state = gateway.wait_for(lambda state: not state['connected'])
        assert 'does not answer' in state['why'] and 'a' in state['workers']
        stub.speak()
        gateway.wait_for(lambda state: state['connected'])


def test_the_end_of_a_watch_begins_another_one(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, 'kube:watch=1', *QUICK, mode='external') as gateway:
        stub.wait_for(lambda: watches(stub) >= 3, 30, notified=False)
        assert gateway.state()['connected'] and lists(stub) == 1


def test_without_the_server_the_last_workers_stay(stub, gateway):
    stub.create_pod('a', LABELS)
    gateway.wait_for(lambda state: 'a' in state['workers'])
    stub.stop()
    state = gateway.wait_for(lambda state: not state['connected'])
    assert 'a' in state['workers'] and stub.url in state['why']
    stub.create_pod('b', LABELS)
    stub.start()
    state = gateway.wait_for(lambda state: 'b' in state['workers'])
    assert state['connected'] and state['why'] == '' and not [line for line in gateway.news if line.startswith('remove')]
    assert gateway.log().count('the last known workers stay') == 1 and gateway.log().count('answers again') == 1


def test_a_server_that_is_away_at_the_start_is_waited_for(stub, kubelet, tmp_path):
    assert kubelet
    stub.stop()
    with KubePool(stub, tmp_path, *QUICK, mode='external') as gateway:
        state = gateway.wait_for(lambda state: 'does not answer' in state['why'])
        assert not state['listed']
        stub.start()
        gateway.wait_for(lambda state: state['listed'] and state['connected'])


def test_a_rotated_token_is_read_again(stub, gateway):
    stub.rotate_token()
    stub.cut_watches()
    stub.create_pod('a', LABELS)
    gateway.wait_for(lambda state: 'a' in state['workers'])
    assert stub.count(status=401) == 1


def test_a_token_that_stays_wrong_names_the_setting(stub, gateway):
    token = stub.token
    stub.accounts.clear()
    stub.rotate_token()
    stub.cut_watches()
    state = gateway.wait_for(lambda state: not state['connected'])
    assert 'kubernetes.token_file' in state['why']
    stub.rotate_token(token)
    gateway.wait_for(lambda state: state['connected'])


def test_the_token_is_read_again_by_time(stub, kubelet, tmp_path):
    assert kubelet
    with KubePool(stub, tmp_path, 'kube:token=50', 'kube:watch=1', *QUICK, mode='external') as gateway:
        gateway.wait_for(lambda state: state['listed'])
        fresh = stub.token + '-2'
        stub.users[fresh] = stub.users[stub.token]
        for folder in stub.accounts:
            (folder / 'token').write_text(fresh, encoding='ascii')
        stub.wait_for(lambda: any(request.headers['authorization'].endswith(fresh) for request in stub.asked(verb='watch')), 30, notified=False)
        assert stub.count(status=401) == 0


def test_retry_after_is_kept(stub, kubelet, tmp_path):
    assert kubelet
    stub.throttle(1, seconds=1, verb='list')
    with KubePool(stub, tmp_path, *QUICK, mode='external') as gateway:
        gateway.wait_for(lambda state: state['listed'])
        refused, listed = stub.asked(verb='list')
        assert refused.status == 429 and listed.time - refused.time >= 0.99


@pytest.mark.parametrize('fault, words', [
    (lambda stub: stub.forbid('list', 'pods'), ['may not list and watch pods', 'Role', 'namespace workers']),
    (lambda stub: stub.fail(500, 'InternalError', 'etcd is full', times=1000, verb='list'), ['500', 'etcd is full']),
    (lambda stub: stub.fail(400, 'BadRequest', 'unable to parse requirement', times=1000, verb='list'), ['400', 'unable to parse'])])
def test_a_refusal_is_told_in_words(stub, tmp_path, fault, words):
    fault(stub)
    with KubePool(stub, tmp_path, *QUICK, mode='external') as gateway:
        state = gateway.wait_for(lambda state: all(word in state['why'] for word in words))
        assert not state['listed'] and not state['connected']
        stub.allow('list', 'pods')
        stub.faults.clear()
        gateway.wait_for(lambda state: state['listed'])


def test_a_list_that_breaks_off_removes_nothing(stub, gateway):
    stub.create_pod('a', LABELS)
    gateway.wait_for(lambda state: 'a' in state['workers'])
    stub.lose_answers(2, verb='list')
    stub.error_watches()
    stub.wait_for(lambda: lists(stub) == 4, notified=False)
    gateway.wait_for(lambda state: state['connected'] and 'a' in state['workers'])
    assert not [line for line in gateway.news if line.startswith('remove')]


def test_tls_is_checked_by_the_authority(tmp_path):
    with KubeStub(tls=tmp_path / 'tls') as stub, Kubelet(stub):
        with KubePool(stub, tmp_path, *QUICK, mode='external') as gateway:
            stub.create_pod('a', LABELS)
            gateway.wait_for(lambda state: 'a' in state['workers'])
        with KubePool(stub, tmp_path, 'kubernetes.ca_file=', *QUICK, name='strict', mode='external') as gateway:
            assert 'certificate' in gateway.wait_for(lambda state: 'does not answer' in state['why'])['why']


def test_the_namespace_is_that_of_the_own_pod_or_the_settings(tmp_path):
    with KubeStub(namespaces=['workers', 'others']) as stub, Kubelet(stub):
        with KubePool(stub, tmp_path, mode='external') as own, KubePool(stub, tmp_path, 'kubernetes.namespace=others', name='other', mode='external') as other:
            stub.create_pod('a', LABELS)
            stub.create_pod('b', LABELS, namespace='others')
            own.wait_for(lambda state: set(state['workers']) == {'a'})
            other.wait_for(lambda state: set(state['workers']) == {'b'})


@pytest.mark.parametrize('words, expected', [
    (['kubernetes.api_url=http://10.1.2.3'], 'has to be https'), ([], 'KUBERNETES_SERVICE_HOST'),
    (['kubernetes.api_url=https://127.0.0.1:1'], 'kubernetes.token_file'), (['kubernetes.api_url=http://127.0.0.1:1'], 'kubernetes.namespace')])
def test_a_wrong_setting_prevents_the_start(words, expected, tmp_path):
    done = subprocess.run([PROGRAM, 'kubernetes.mode=external', f'kubernetes.token_file={tmp_path}/none', *words], env={'HOME': str(tmp_path)},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and expected in done.stderr
