"""The distribution caisson-sandbox: it is built and installed without a network, is typed, and needs the standard library alone."""

import ast
import configparser
import subprocess
import sys
import tarfile
import zipfile

import pytest

from cli import BUILD, ROOT

SDK = ROOT / 'sdk/python'
SOURCES = sorted(SDK.glob('caisson/**/*.py'))


# An adapter imports its host, and nothing else does.
HOSTS = {
    'deepagents': ('deepagents', 'deepagents_code'), 'harbor': ('harbor',), 'inspect_ai': ('inspect_ai',), 'langchain': ('langchain_core',), 'nemo_gym': ('nemo_gym',),
    'openai_agents': ('agents',), 'smolagents': ('smolagents', 'PIL'), 'verifiers': ('verifiers',), 'rllm': (),
}
ADAPTER_LINES_MAX = 150


def run(*command, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=280, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def has_module(name):
    return subprocess.run(['/usr/bin/python3', '-m', name, '--version'], capture_output=True, check=False).returncode == 0


@pytest.fixture(name='built', scope='module')
def distributions(tmp_path_factory):
    """The folder with the source distribution and the wheel."""
    if not has_module('build'):
        pytest.skip('needs python3-build, see scripts/setup')
    source, folder = tmp_path_factory.mktemp('source') / 'python', tmp_path_factory.mktemp('dist')
    run('cp', '-a', SDK, source)
    run('/usr/bin/python3', '-m', 'build', '--no-isolation', '--outdir', folder, source)
    return folder


def names_of(archive):
    if archive.suffix == '.whl':
        with zipfile.ZipFile(archive) as file:
            return set(file.namelist())
    with tarfile.open(archive) as file:
        return {member.name.partition('/')[2] for member in file.getmembers() if member.isfile()}


def test_both_distributions_have_all_modules_and_the_mark_of_types(built):
    wanted = {str(path.relative_to(SDK)) for path in SOURCES} | {'caisson/py.typed'}
    archives = list(built.iterdir())
    assert {archive.suffix for archive in archives} == {'.whl', '.gz'}
    for archive in archives:
        assert {name for name in names_of(archive) if name.startswith('caisson/')} == wanted, archive


def test_the_wheel_works_in_a_clean_environment(built, tmp_path):
    if not has_module('ensurepip'):
        pytest.skip('needs python3-venv, see scripts/setup')
    wheel, = built.glob('caisson_sandbox-*-py3-none-any.whl')
    place = tmp_path / 'venv'
    run('/usr/bin/python3', '-m', 'venv', place)
    run(place / 'bin/pip', 'install', '--no-index', '--disable-pip-version-check', wheel)
    program = """if True:
        import importlib.metadata, caisson, caisson.compat.lcb, caisson.rewards
        with caisson.Client.local() as client:
            print(caisson.__file__, importlib.metadata.version('caisson-sandbox') == caisson.__version__, client.run('print(6 * 7)').stdout)
    """
    out = run(place / 'bin/python', '-I', '-c', program, env={'CAISSON_CAISSOND': str(BUILD / 'caissond'), 'HOME': '/nonexistent', 'PATH': '/usr/bin:/bin'})
    path, version, value = out.split()
    assert path.startswith(f'{place}/lib/') and (version, value) == ('True', '42')


def test_the_wheel_declares_the_entry_points_of_hosts(built):
    wheel, = built.glob('*.whl')
    with zipfile.ZipFile(wheel) as file:
        name, = (name for name in file.namelist() if name.endswith('entry_points.txt'))
        entries = configparser.ConfigParser()
        entries.read_string(file.read(name).decode())
        modules = set(file.namelist())
    found = {group: dict(entries[group]) for group in entries.sections()}
    assert found == {
        'inspect_ai': {'caisson': 'caisson.integrations.inspect_ai'},
        'deepagents_code.sandbox_providers': {'caisson': 'caisson.integrations.deepagents:CaissonProvider'},
        'nemo_gym.sandbox_providers': {'caisson': 'caisson.integrations.nemo_gym:CaissonProvider'},
    }
    assert all(f'{target.partition(":")[0].replace(".", "/")}.py' in modules for group in found.values() for target in group.values())


def test_adapters_are_short_and_not_imported_with_the_package():
    adapters = {path.stem: path for path in (SDK / 'caisson/integrations').glob('[a-z]*.py')}
    assert set(adapters) == set(HOSTS)
    assert all(len(path.read_text().splitlines()) <= ADAPTER_LINES_MAX for path in adapters.values())
    program = 'import sys, caisson, caisson.integrations\nprint([name for name in sys.modules if name.startswith("caisson.integrations.")])'
    assert run(sys.executable, '-c', program) == '[]\n'


def test_the_types_are_whole():
    if not has_module('mypy'):
        pytest.skip('needs mypy, see scripts/setup')
    out = run('/usr/bin/python3', '-m', 'mypy', '--strict', '--cache-dir=/dev/null', '--config-file', SDK / 'pyproject.toml', SDK / 'caisson')
    assert 'no issues' in out


@pytest.mark.parametrize('path', SOURCES, ids=lambda path: str(path.relative_to(SDK)))
def test_a_module_imports_the_standard_library_alone(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    roots = {name.split('.')[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in (alias.name for alias in node.names)}
    roots |= {node.module.split('.')[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
    roots -= {'caisson', *HOSTS.get(path.stem, ())} if path.parent.name == 'integrations' else {'caisson'}
    assert roots <= sys.stdlib_module_names, roots - sys.stdlib_module_names
    assert ast.get_docstring(tree), 'a module begins with what it is for'


def test_all_that_the_package_names_is_there():
    import caisson
    assert all(hasattr(caisson, name) for name in caisson.__all__) and caisson.__all__ == sorted(caisson.__all__)
