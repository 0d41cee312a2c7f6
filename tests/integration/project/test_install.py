"""make install and make uninstall: what is put where, and that nothing of it stays."""

import json
import os
import re
import subprocess

import pytest

from cli import BUILD, ROOT, caisson

PREFIX = 'usr/local'
PUT = ['bin/caisson', 'sbin/caissond', 'libexec/caisson/caisson-supervisor', 'libexec/caisson/caisson-policy', 'libexec/caisson/caisson-remote', 'libexec/caisson/caisson-gateway',
       'include/caisson/caisson.h', 'lib/systemd/system/caissond.service', 'lib/systemd/system/caissond.socket', 'lib/systemd/system/caisson-gateway.service', 'lib/sysusers.d/caisson.conf',
       'share/man/man1/caisson.1', 'share/man/man5/caisson.conf.5', 'share/man/man8/caissond.8', 'share/man/man8/caisson-gateway.8', 'share/caisson/policies/linx.yaml',
       'share/caisson/grafana/caisson.json', 'share/caisson/images/build', 'share/caisson/kubernetes/overlays/owned/kustomization.yaml', 'share/caisson/agent-sandbox/warmpool.yaml', 'share/caisson/images/python-data/packages', 'share/caisson/schema/run_request.json', 'share/bash-completion/completions/caisson.bash',
       'share/zsh/site-functions/_caisson', 'share/fish/vendor_completions.d/caisson.fish', 'share/doc/caisson/LICENSE', 'share/doc/caisson/README.md',
       'share/doc/caisson/docs/use/http.md', 'share/doc/caisson/docs/use/settings.md', 'share/doc/caisson/examples/caisson.yaml', 'share/doc/caisson/examples/hello.py']


def entries(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob('*'))


def put_into(root):
    subprocess.run(['meson', 'install', '-C', str(BUILD), '--no-rebuild'], env={**os.environ, 'DESTDIR': str(root)}, stdout=subprocess.PIPE, check=True, timeout=300)


def take_away():
    subprocess.run([ROOT / 'scripts/uninstall', str(BUILD)], check=True, timeout=100)


@pytest.fixture(name='installed', scope='module')
def install(tmp_path_factory):
    root = tmp_path_factory.mktemp('root')
    put_into(root)
    return root / PREFIX


def test_everything_is_there(installed):
    there = set(entries(installed))
    assert [path for path in PUT if path not in there] == []
    assert any(re.search(r'/caisson/lang/python/run\.py$', path) for path in there) and any(path.endswith('/pkgconfig/caisson.pc') for path in there)
    assert {path.name for path in (ROOT / 'docs/use').glob('*.md')} <= {path.name for path in (installed / 'share/doc/caisson/docs/use').iterdir()}


@pytest.mark.parametrize('shell, file', [('bash', 'bash-completion/completions/caisson.bash'), ('zsh', 'zsh/site-functions/_caisson'),
                                         ('fish', 'fish/vendor_completions.d/caisson.fish')])
def test_completions_are_those_of_the_program(installed, shell, file):
    assert (installed / 'share' / file).read_text() == caisson('completion', shell).out


def test_nobody_but_root_may_change_what_is_installed(installed):
    for path in installed.rglob('*'):
        assert path.is_symlink() or not path.stat().st_mode & 0o022, path
        assert path.is_symlink() or path.stat().st_mode & 0o444 == 0o444, path


def test_the_sample_configuration_sets_the_defaults(installed, tmp_path):
    text = (installed / 'share/doc/caisson/examples/caisson.yaml').read_text()
    keys = re.findall(r'^#  ([\w.]+): ', text, flags=re.M)
    whole = tmp_path / 'caisson.yaml'
    whole.write_text(re.sub(r'^#(?! )|^#(?=  )', '', text, flags=re.M))
    shown = {row['key']: row for row in json.loads(caisson('config', 'show', '--json', '--config', whole).out)}
    plain = {row['key']: row['value'] for row in json.loads(caisson('config', 'show', '--json').out)}
    assert len(keys) == len(shown) > 60
    assert {key: row['value'] for key, row in shown.items()} == plain
    assert all(str(whole) in row['source'] for row in shown.values())


def test_uninstall_says_so_where_nothing_was_installed(tmp_path):
    done = subprocess.run([ROOT / 'scripts/uninstall', str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and 'nothing was installed' in done.stderr


def test_uninstall_leaves_nothing(tmp_path):
    put_into(tmp_path)
    assert len(entries(tmp_path)) > 200
    take_away()
    assert entries(tmp_path) == []


def test_what_was_there_before_stays(tmp_path):
    mine = tmp_path / PREFIX / 'share/doc/caisson/mine'
    mine.parent.mkdir(parents=True)
    mine.write_text('x')
    put_into(tmp_path)
    take_away()
    assert entries(tmp_path)[-1].endswith('share/doc/caisson/mine') and mine.read_text() == 'x'
    assert [path for path in tmp_path.rglob('*') if path.is_file()] == [mine]
