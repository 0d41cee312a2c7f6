"""The help, suggestions, and what there is to do where there is nothing to show."""

import json
import os
import re
import signal
import socket
import subprocess

import pytest

from cli import CAISSON, caisson, environment
from daemon import Daemon

COMMANDS = re.findall(r"^ +'(\w+):", caisson('completion', 'zsh').out.partition('commands=(')[2].partition('\n        )')[0], flags=re.M)


def test_the_overview_fits_a_terminal_and_names_every_command():
    lines = caisson('help').out.splitlines()
    assert len(lines) <= 23 and all(len(line) <= 80 for line in lines)      # and one for the prompt
    first = re.findall(r'^  (\w+)  +[A-Z]', '\n'.join(lines), flags=re.M)
    assert len(first) == 5 and 'run' in first
    assert len(COMMANDS) > 20 and all(re.search(rf'\b{name}\b', '\n'.join(lines).partition('begin with')[2]) for name in COMMANDS)
    assert 'caisson help COMMAND' in lines[-3] and 'man caisson' in lines[-2]


@pytest.mark.parametrize('command', COMMANDS)
def test_the_help_of_a_command_begins_with_an_example_of_it(command):
    lines = caisson('help', command).out.splitlines()
    assert lines[0].startswith('Example: ') and f'caisson {command}' in lines[0] and lines[2].startswith(f'Usage: caisson {command}')


def example(command):
    return caisson('help', command).out.splitlines()[0].removeprefix('Example: ')


def shell(line, **env):
    path = os.path.dirname(os.path.realpath(CAISSON)) + ':' + os.environ['PATH']
    return subprocess.run(['bash', '-c', f'set -o pipefail; {line}'], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment(PATH=path, **env),
                          timeout=100, check=False)


@pytest.mark.parametrize('command', sorted(set(COMMANDS) - {'serve', 'gateway', 'mcp', 'sandbox', 'context', 'ps', 'top', 'pool', 'runs', 'logs', 'keys', 'e2b', 'volume', 'check'}))
def test_examples_without_a_daemon_work(command):
    done = shell(example(command))
    assert done.returncode == 0, done


def test_the_example_of_the_gateway_needs_its_key_file():
    done = shell(example('gateway'))
    assert done.returncode == 78 and 'gateway.key_file' in done.stderr and '/etc/caisson/gateway.key' in done.stderr, done


def test_the_example_of_a_check_finds_something():
    done = shell(example('check') + ' --json')
    assert done.returncode == 2 and json.loads(done.stdout)['verdict'] == 'deny', done


@pytest.mark.parametrize('command', ['sandbox', 'context', 'ps', 'top', 'pool', 'runs', 'logs', 'keys', 'e2b', 'volume', 'mcp'])
def test_examples_with_a_daemon_work(daemon, command):
    done = shell(example(command), CAISSON_ENGINE_SOCKET=str(daemon.path), CAISSON_ENGINE_STATE_DIR=daemon.state, CAISSON_ENGINE_HTTP=daemon.http)
    assert done.returncode == 0, done


# ---- words of an option ----

def options_with_words(command):
    """[(option, words)] of its help."""
    rows = re.findall(r'^ +(?:-\w,)? +--([\w-]+) \S+ .*One of: ([^.]+)\.', caisson('help', command).out, flags=re.M)
    return [(name, re.split(r', | or ', words)) for name, words in rows]


@pytest.mark.parametrize('option, words', options_with_words('run'))
def test_each_word_that_the_help_lists_is_taken_and_no_other(option, words):
    assert len(words) > 1
    for word in words:
        done = caisson('run', '-l', 'bash', f'--{option}', word, '-c', 'exit 0', '--policy', 'x')     # refused before anything is made
        assert done.status in (64, 125) and f'--{option} is' not in done.err and 'did you mean' not in done.err, done.err
    done = caisson('run', '-l', 'bash', f'--{option}', 'zzz', '-c', 'exit 0')
    assert done.status == 64 and all(word in done.err for word in words) and f'--{option} is "zzz"' in done.err, done.err


@pytest.mark.parametrize('command, options', [
    ('run', {'format', 'daemon', 'network', 'landlock', 'cgroup', 'output-action'}), ('check', {'block-at', 'daemon'}),
    ('describe', {'format', 'session'}), ('logs', {'level'}), ('runs', {'status'}), ('mcp', {'daemon'}), ('grade', {'checker'}),
    ('sandbox', {'network', 'landlock'}), ('context', {'user'})])
def test_words_are_listed_and_completed(tmp_path, command, options):
    listed = dict(options_with_words(command))
    assert options <= set(listed)
    bash, zsh, fish = (caisson('completion', name).out for name in ('bash', 'zsh', 'fish'))
    part = {'sandbox': 'sandbox create ', 'context': 'context create '}.get(command, f'{command} ')
    for option in options:
        words = ' '.join(listed[option])
        assert f'"{part}--{option}") mapfile -t COMPREPLY < <(compgen -W "{words}"' in bash
        assert re.search(rf"'--{option}=\[[^]]*\]:value:\({re.escape(words)}\)'", zsh), option
        assert f"-l {option} -r -f -a '{words}'" in fish, option
    script = tmp_path / 'script'
    script.write_text(bash)
    option = sorted(options)[0]
    line = f"{part}--{option}".split()
    code = f'. {script}; COMP_WORDS=(caisson {" ".join(line)} "") COMP_CWORD={len(line) + 1}; _caisson; printf "%s\n" "${{COMPREPLY[@]}}"'
    assert subprocess.run(['bash', '-c', code], capture_output=True, text=True, check=True).stdout.split() == listed[option]


@pytest.mark.parametrize('args, meant', [
    (['rnu'], 'caisson run'), (['chekc'], 'caisson check'), (['docter'], 'caisson doctor'), (['sandboxes'], 'caisson sandbox'), (['prof'], 'caisson profiles'),
    (['help', 'gradee'], 'caisson grade'), (['sandbox', 'creat'], 'create'), (['context', 'interupt'], 'interrupt'), (['tools', 'lst'], 'list'), (['layers', 'lst'], 'list'),
    (['run', '--tiemout', '1s'], '--timeout'), (['run', '--memroy=1GiB'], '--memory'), (['run', '--languages', 'bash'], '--language'), (['check', '--polcy', 'x'], '--policy'),
    (['grade', '--chekcer', 'x'], '--checker'), (['keys', 'create', '--nmae', 'x'], '--name'), (['runs', '--statsu', 'x'], '--status'), (['serve', '--lisen', 'x'], '--listen'),
    (['ps', '--jsn'], '--json'), (['top', '--onec'], '--once'), (['doctor', '--jsno'], '--json'), (['e2b', 'env', '--tenent', 'x'], '--tenant'),
    (['sandbox', 'create', '--memmory', '1'], '--memory'), (['describe', '--formt', 'mcp'], '--format'), (['policy', 'test', '--langage', 'x'], '--language'),
    (['run', '--format', 'plian'], 'plain'), (['run', '-l', 'bash', '--network', 'pubic', '-c', '1'], 'public'), (['run', '--landlock', 'requir', '-c', '1'], 'require'),
    (['run', '--output-action', 'klil', '-c', '1'], 'kill'), (['run', '--daemon', 'alway', '-c', '1'], 'always'), (['describe', '--session', 'file'], 'files'),
    (['check', '--block-at', 'HIHG', '-c', '1'], 'HIGH'), (['logs', '--level', 'wran'], 'warn'), (['runs', '--status', 'timout'], 'timeout'),
    (['mcp', '--daemon', 'nevr'], 'never'), (['sandbox', 'create', '--network', 'non'], 'none')])
def test_what_was_meant_is_said(args, meant):
    done = caisson(*args)
    assert done.status == 64 and done.out == '' and f'did you mean {meant}?' in done.err, done.err


@pytest.mark.parametrize('command', ['keys', 'e2b', 'config', 'policy', 'profiles', 'completion'])
def test_a_missing_subcommand_leads_to_the_help_of_its_command(command):
    done = caisson(command, *(['set'] if command == 'config' else []))
    if command != 'config' and done.status == 0:
        return   # it has an answer without one
    assert done.status == 64 and done.err.rstrip().endswith(f'; see caisson help {command}') and ': give a ' in done.err, done.err


@pytest.mark.parametrize('args', [('keys', 'create'), ('keys', 'list'), ('runs', 'show'), ('config', 'show'), ('policy', 'test'), ('e2b', 'env'), ('profiles', 'show')])
def test_help_of_a_subcommand(args):
    done = caisson(*args, '--help')
    assert done.status == 0 and f'Usage: caisson {args[0]} ' in done.out and done.err == ''


def test_show_of_settings_takes_no_name():
    assert 'config: show takes no name' in caisson('config', 'show', 'limits.pids').err


@pytest.mark.parametrize('args', [['xyzzy'], ['run', '--xyzzy'], ['sandbox', 'xyzzy'], ['ps', '--xyzzy'], ['run', '--format', 'xyzzy'], ['run', '-Z']])
def test_what_is_near_nothing_has_no_suggestion(args):
    done = caisson(*args)
    assert done.status == 64 and 'did you mean' not in done.err and ('caisson help' in done.err or 'has to be' in done.err), done.err


@pytest.mark.parametrize('command', ['run', 'check', 'grade', 'describe', 'logs', 'runs', 'serve', 'mcp'])
def test_a_missing_value_an_unknown_option_and_a_value_too_many_are_told_apart(command):
    option, flag = ('listen', 'keys') if command == 'serve' else ('daemon', None) if command in ('run', 'check', 'mcp') else (
        {'grade': 'checker', 'describe': 'format', 'logs': 'level', 'runs': 'status'}[command], {'describe': None}.get(command, 'json'))
    assert f'{command}: the option --{option} needs a value; see caisson help {command}\n' in caisson(command, f'--{option}').err
    assert f'{command}: there is no option --zzzzzz; see caisson help {command}\n' in caisson(command, '--zzzzzz').err
    assert f'{command}: there is no option -Z; see caisson help {command}\n' in caisson(command, '-Z').err
    if flag:
        assert f'{command}: the option --{flag} takes no value' in caisson(command, f'--{flag}=1').err


def test_a_beginning_of_more_than_one_option_lists_them():
    done = caisson('run', '--cpu', '1')
    assert done.status == 64 and '--cpu is the beginning of --cpu-time, --cpus; write one of them' in done.err, done.err


@pytest.mark.parametrize('command', [['run'], ['ps'], ['config', 'show'], ['doctor'], ['sandbox', 'list'], ['check'], ['gc']])
@pytest.mark.parametrize('option', ['--config', '--set'])
def test_settings_without_a_value_are_told(command, option):
    done = caisson(*command, option)
    assert done.status == 64 and f'the option {option} needs a value' in done.err, done.err


# ---- nothing to show ----

@pytest.fixture(name='daemon', scope='module')
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp('help')
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    daemon = Daemon(folder, '--set', f'engine.state_dir={folder}', '--set', f'engine.http=127.0.0.1:{port}', '--set', 'engine.http_keyless=true').ready()
    daemon.state, daemon.http = str(folder), f'127.0.0.1:{port}'
    yield daemon
    assert daemon.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize('command', [['ps'], ['top', '--once'], ['pool'], ['sandbox', 'list'], ['context', 'list'], ['sandbox', 'create'], ['run', '--daemon', 'always', '-c', '1']])
def test_without_a_daemon_there_is_a_way_to_one(tmp_path, command):
    done = caisson(*command, '--set', f'engine.socket={tmp_path}/none')
    assert done.status == 125 and f'{tmp_path}/none' in done.err and 'caisson serve starts one' in done.err, done.err


def test_without_anything_to_show_there_is_something_to_do(tmp_path):
    daemon = Daemon(tmp_path).ready()
    where = {'CAISSON_ENGINE_SOCKET': str(daemon.path), 'CAISSON_ENGINE_STATE_DIR': str(tmp_path / 'empty')}
    for command, words in ((['ps'], 'caisson runs'), (['top', '--once'], 'caisson runs'), (['sandbox', 'list'], 'caisson sandbox create'), (['context', 'list'], 'caisson context create'),
                           (['keys', 'list'], 'caisson keys create'), (['runs'], 'HTTP'), (['tools', 'list'], 'mcpServers'), (['tools', 'check'], 'mcpServers')):
        done = caisson(*command, env=where)
        assert done.status == 0 and words in done.err, (command, done.err)
        if command[0] not in ('top', 'tools'):
            quiet = caisson(*command, '--json', env=where)
            assert quiet.status == 0 and quiet.err == '', (command, quiet.err)
    daemon.stop()


def test_pools_say_when_there_are_some(tmp_path):
    daemon = Daemon(tmp_path, '--set', 'engine.pool_max=0', '--set', 'engine.pool_min=0').ready()
    done = caisson('pool', env={'CAISSON_ENGINE_SOCKET': str(daemon.path)})
    assert done.status == 0 and ('nothing waits ready' in done.err) == (len(done.out.splitlines()) == 1), done.err
    daemon.stop()


def test_an_address_in_use_is_told_with_another(tmp_path):
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        done = caisson('serve', '--listen', f'127.0.0.1:{port}', '--set', f'engine.socket={tmp_path}/s', '--set', f'engine.state_dir={tmp_path}')
    assert done.status == 125 and f'127.0.0.1:{port} is in use' in done.err and '--listen 127.0.0.1:8081' in done.err, done.err


@pytest.mark.parametrize('form', ['openai', 'anthropic', 'mcp'])
def test_the_schema_for_a_model_has_no_paths_of_this_host(form):
    text = json.dumps(json.loads(caisson('describe', '--format', form).out))
    assert '"input_file"' in text and 'Only the command line' not in text
