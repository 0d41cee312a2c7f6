"""Files in and out of a run, and work folders, by the command line."""

import base64
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from cli import CAISSON, bash, caisson, environment, python, refused, sha256, write


# ---- files in ----

NAMES = ['[Video] Template (1) é.pptx', 'a b.txt', '-rf', "it's \"quoted\".csv", '$(id);`x`|&.txt', 'ü (1).txt', '日本語.md', '*?',
         'a' * 255, '.hidden', 'x.', 'con:colon']


@pytest.mark.parametrize('name', NAMES)
def test_a_name_is_used_exactly_as_it_is(tmp_path, name):
    content = os.urandom(1000)
    path = write(tmp_path / name, content)
    record = python('import hashlib, sys\nfor n in sys.argv[1:]: print(hashlib.sha256(open(n, "rb").read()).hexdigest())',
                    '--file', path, '--', name)
    assert record['stdout'] == sha256(content) + '\n', record['stderr']
    taken, = record['inputs']
    assert taken.pop('ms') >= 0      # S3-94
    assert taken == {'name': name, 'size_bytes': 1000, 'sha256': sha256(content)}
    assert record['files'] == []


def test_another_name_and_folders(tmp_path):
    path = write(tmp_path / 'a.txt', 'x')
    record = bash('cat "in/der/b c.txt"; stat -c %a "in/der/b c.txt"', '--file', f'{path}:in/der/b c.txt')
    assert record['stdout'] == 'x644\n'


def test_a_file_whose_own_name_has_a_colon_wins(tmp_path):
    write(tmp_path / 'a:b', 'colon')
    write(tmp_path / 'a', 'plain')
    assert bash('cat a:b', '--file', f'{tmp_path}/a:b')['stdout'] == 'colon'


def test_the_time_of_a_file_is_kept(tmp_path):
    path = write(tmp_path / 'a', 'x')
    os.utime(path, (1000000000, 1000000000))
    assert bash('stat -c %Y a', '--file', path)['stdout'] == '1000000000\n'


def test_an_empty_file_and_many_files(tmp_path):
    options = []
    for i in range(300):
        options += ['--file', write(tmp_path / f'f{i}', b'' if i == 0 else str(i))]
    record = bash('ls f* | wc -l; cat f0 f299', *options)
    assert record['stdout'] == '300\n299' and len(record['inputs']) == 300


@pytest.mark.parametrize('name', ['/abs', '../up', 'a/../b', 'a//b', './a', 'a/', '.', '..', 'a\nb', 'a\x1bb', 'a\u202eb',
                                  'x' * 256, '/'.join('a' * 33), '/'.join(['x' * 200] * 6)])
def test_a_bad_name_of_a_file_is_refused(tmp_path, name):
    refused(bash('ls', '--file', f'{write(tmp_path / "a.txt", "x")}:{name}'), 'cannot be the name', field='/files')


def test_an_empty_name_of_a_file_is_refused(tmp_path):
    refused(bash('ls', '--file', f'{write(tmp_path / "a.txt", "x")}:'))


def test_two_files_of_one_name_are_refused(tmp_path):
    a, b = write(tmp_path / '1' / 'a', '1'), write(tmp_path / '2' / 'a', '2')
    refused(bash('ls', '--file', a, '--file', b), 'two input files have the name a', field='/files')


def test_a_file_with_the_programs_name_is_refused(tmp_path):
    refused(bash('ls', '--file', write(tmp_path / 'main.sh', '1')), 'main.sh', '--name')
    assert bash('cat main.sh', '--name', 'other.sh', '--file', tmp_path / 'main.sh')['stdout'] == '1'


def test_a_file_and_a_folder_of_one_name_are_refused(tmp_path):
    path = write(tmp_path / 'a', '1')
    record = bash('ls', '--file', f'{path}:x', '--file', f'{path}:x/y')
    assert record['status'] == 'bad_request', record['error']


def test_only_regular_files_are_taken(tmp_path):
    os.mkfifo(tmp_path / 'fifo')
    for path in (tmp_path, tmp_path / 'fifo', '/dev/zero'):
        refused(bash('ls', '--file', path), 'not a regular file')
    refused(bash('ls', '--file', tmp_path / 'none'), 'No such file')


def test_too_large_files_are_refused(tmp_path):
    path = write(tmp_path / 'a', b'x' * 200000)
    refused(bash('ls', '--file', path, '--input', '100k'), 'input_bytes=100000', '--input', field='/files')
    refused(bash('ls', '--file', path, '--disk', '128KiB'), 'disk_bytes=131072', '--disk')
    assert bash('wc -c < a', '--file', path, '--input', '200100')['stdout'] == '200000\n'


# ---- files out ----

def test_new_and_changed_files_are_listed_with_their_hash(tmp_path):
    same, changed = write(tmp_path / 'same', 'x'), write(tmp_path / 'changed', 'x')
    record = bash('echo y > changed; touch same; mkdir -p d/e; printf 12 > d/e/new; : > empty', '--file', same, '--file', changed)
    assert [(f['name'], f['size_bytes'], f['sha256'], f['changed']) for f in record['files']] == [
        ('changed', 2, sha256(b'y\n'), True), ('d/e/new', 2, sha256(b'12'), False), ('empty', 0, sha256(b''), False)]


def test_exports_go_to_their_folders(tmp_path):
    record = bash('mkdir -p a/b; echo 1 > x.csv; echo 2 > a/b/y.csv; echo 3 > z.txt',
                  '--export', f'*.csv:{tmp_path}/csv', '--export', f'z*:{tmp_path}/txt')
    assert (tmp_path / 'csv/x.csv').read_text() == '1\n' and (tmp_path / 'csv/a/b/y.csv').read_text() == '2\n'
    assert sorted(p.name for p in (tmp_path / 'txt').iterdir()) == ['z.txt']
    assert {f['name']: f['path'] for f in record['files']} == {
        'x.csv': f'{tmp_path}/csv/x.csv', 'a/b/y.csv': f'{tmp_path}/csv/a/b/y.csv', 'z.txt': f'{tmp_path}/txt/z.txt'}


def test_a_pattern_with_a_slash_is_compared_with_the_whole_name(tmp_path):
    bash('mkdir a; echo 1 > x; echo 2 > a/x', '--export', f'a/*:{tmp_path}/out')
    assert [p.name for p in (tmp_path / 'out').rglob('*') if p.is_file()] == ['x'] and (tmp_path / 'out/a/x').exists()


def test_an_export_has_plain_rights_and_keeps_its_time(tmp_path):
    bash('echo x > f; chmod 4755 f; touch -d @1000000000 f; chmod 0 f', '--export', f'f:{tmp_path}')
    about = (tmp_path / 'f').stat()
    assert about.st_mode & 0o7777 == 0o644 and about.st_mtime == 1000000000
    assert about.st_uid == os.geteuid()


def test_exports_happen_after_a_failure_and_after_a_time_out(tmp_path):
    bash('echo 1 > f; exit 3', '--export', f'f:{tmp_path}/a')
    bash('echo 2 > f; sleep 30', '--timeout', '2s', '--export', f'f:{tmp_path}/b')
    bash('echo 3 > f; kill -KILL $$', '--export', f'f:{tmp_path}/c')
    assert [(tmp_path / d / 'f').read_text() for d in 'abc'] == ['1\n', '2\n', '3\n']


def test_links_and_special_files_never_leave(tmp_path):
    record = bash('ln -s /etc/passwd link; ln -s /proc/self/environ link2; mkfifo fifo; echo x > a; ln a b; ln -s / dir; '
                  'mkdir sub; ln -s ../../../etc sub/up; echo good > good', '--export', f'*:{tmp_path}')
    by_name = {f['name']: f for f in record['files']}
    assert sorted(by_name) == ['a', 'b', 'good'] and 'hard links' in by_name['a']['error']
    assert 'path' not in by_name['a'] and sorted(p.name for p in tmp_path.iterdir()) == ['good']


def test_an_existing_file_is_replaced_and_a_planted_link_is_not_followed(tmp_path):
    victim = write(tmp_path / 'victim', 'precious')
    out = tmp_path / 'out'
    write(out / 'old', 'old')
    (out / 'link').symlink_to(victim)
    os.link(victim, out / 'hard')
    bash('for f in old link hard; do echo new > $f; done', '--export', f'*:{out}')
    assert victim.read_text() == 'precious'
    assert [(out / n).read_text() for n in ('old', 'link', 'hard')] == ['new\n'] * 3 and not (out / 'link').is_symlink()


def test_a_planted_link_in_place_of_a_folder_is_refused(tmp_path):
    elsewhere, out = tmp_path / 'elsewhere', tmp_path / 'out'
    elsewhere.mkdir()
    out.mkdir()
    (out / 'd').symlink_to(elsewhere)
    record = bash('mkdir d; echo x > d/f; echo y > g', '--export', f'*:{out}')
    assert list(elsewhere.iterdir()) == [] and (out / 'g').read_text() == 'y\n'
    assert 'error' in next(f for f in record['files'] if f['name'] == 'd/f')


def test_names_that_are_unsafe_here_stay_inside(tmp_path):
    record = python(r'for n in (b"bad\xff", b"a\nb", b"good"): open(n, "w").write("x")', '--export', f'*:{tmp_path}')
    assert [p.name for p in tmp_path.iterdir()] == ['good'] and len(record['files']) == 3
    odd = next(f for f in record['files'] if 'name_base64' in f)
    assert base64.b64decode(odd['name_base64']) == b'bad\xff' and odd['name'] == 'bad\ufffd' and odd['error']


@pytest.mark.parametrize('text', ['x', ':x', 'x:'])
def test_an_export_needs_a_pattern_and_a_folder(text):
    refused(bash('1', '--export', text), 'GLOB:DIR')


def test_an_export_that_cannot_be_written_says_so(tmp_path):
    write(tmp_path / 'file', '')
    record = bash('echo x > f', '--export', f'f:{tmp_path}/file')
    assert record['status'] == 'completed' and record['files'][0]['error']


@pytest.mark.parametrize('code, export, word', [
    ('echo x > a.csv', '*.json:{out}', '*.json: no new or changed regular file'), ('echo x > a', 'b:{out}', 'b: there is no file'),
    ('echo x > a', '/etc/passwd:{out}', '/etc/passwd: an absolute name'), ('ln -s /etc/passwd l', 'l:{out}', 'l: it is a link'),
    ('ln -s /etc/passwd l', 'l*:{out}', 'l*: no new or changed regular file'), ('mkdir d; mkfifo d/p', 'd/p:{out}', 'd/p: it is a link, or not a regular'),
    ('mkdir d', 'd:{out}', 'd: it is a link, or not a regular file'), ('echo x > a; ln a b', 'a:{out}', 'a: it has more than one name'),
    ('echo x > a', 'a:{out}/none/deeper', 'a: make '), ('echo x > a', 'a:/proc/none', 'a: make /proc/none'), ('echo x > a', '../a:{out}', '../a: ')])
@pytest.mark.parametrize('more', [(), ('--json',), ('--format', 'plain')])
def test_a_lost_export_is_a_line_on_standard_error_and_an_exit_status(tmp_path, code, export, word, more):
    done = caisson('run', '-l', 'bash', '-c', code, '--export', export.format(out=tmp_path / 'out'), *more)
    assert done.status == 73 and f'caisson: not exported: {word}' in done.err, (done.status, done.err)


def test_the_exit_status_of_a_program_that_failed_stays_where_an_export_is_lost(tmp_path):
    done = caisson('run', '-l', 'bash', '-c', 'exit 3', '--export', f'a:{tmp_path}/out')
    assert done.status == 3 and 'not exported: a: there is no file' in done.err
    done = caisson('run', '-q', '-l', 'bash', '-c', 'true', '--export', f'a:{tmp_path}/out')
    assert (done.status, done.err) == (73, '')


def test_all_lost_exports_are_one_warning_beside_those_that_came(tmp_path):
    record = bash('for i in 1 2 3 4 5 6 7; do echo x > f$i; ln f$i g$i; done; echo x > good', '--export', f'*:{tmp_path}', '--export', f'*.png:{tmp_path}')
    told = [w['text'] for w in record['warnings'] if w['code'] == 'export_failed']
    assert len(told) == 1 and told[0].startswith('not exported: f1: ') and told[0].endswith('; and 11 more'), record['warnings']
    assert record['exit'] == 73 and record['status'] == 'completed' and (tmp_path / 'good').exists()
    record = bash('for i in 1 2 3 4 5; do : > f$i; done', '--output-files', '3', '--export', f'*:{tmp_path}/few')
    assert record['exit'] == 73 and '--output-files' in next(w['text'] for w in record['warnings'] if w['code'] == 'export_failed')


def test_a_work_file_that_cannot_be_written_back_is_told(tmp_path):
    (tmp_path / 'w/d').mkdir(parents=True)
    done = caisson('run', '-l', 'bash', '-c', 'mkdir d; echo x > d/f; ln d/f g; echo y > good', '--work-dir', tmp_path / 'w')
    assert done.status == 73 and 'not exported: d/f: it has more than one name' in done.err and (tmp_path / 'w/good').read_text() == 'y\n'


def test_an_export_that_came_is_silent(tmp_path):
    done = caisson('run', '-l', 'bash', '-c', 'echo x > a', '--export', f'a:{tmp_path}/out', '--export', f'*:{tmp_path}/all')
    assert (done.status, done.err) == (0, '') and (tmp_path / 'all/a').exists()
    done = caisson('run', '-l', 'bash', '-c', 'true', '--export', f'*:{tmp_path}/nothing')
    assert (done.status, done.err) == (0, '')


def test_more_files_than_are_listed():
    record = bash('for i in 1 2 3 4 5; do : > f$i; done', '--output-files', '3')
    assert len(record['files']) == 3 and record['files_truncated']
    assert [w['code'] for w in record['warnings']] == ['files_truncated']


# ---- --work-dir, gc ----

def test_a_work_folder_is_input_and_output(tmp_path):
    write(tmp_path / 'in/a', '1')
    write(tmp_path / 'b', '2')
    record = bash('cat in/a b; echo new > in/a; echo c > c; rm b', '--work-dir', tmp_path)
    assert record['stdout'] == '12' and record['work_dir'] == str(tmp_path)
    assert ((tmp_path / 'in/a').read_text(), (tmp_path / 'c').read_text(), (tmp_path / 'b').read_text()) == ('new\n', 'c\n', '2')
    assert not (tmp_path / 'main.sh').exists()


def test_a_work_folder_that_is_missing_is_replaced_and_kept(tmp_path):
    state = f'engine.state_dir={tmp_path}/state'
    record = bash('echo x > f', '--set', state, '--work-dir', tmp_path / 'none')
    assert [w['code'] for w in record['warnings']] == ['work_dir_missing'] and not (tmp_path / 'none').exists()
    folder = Path(record['work_dir'])
    assert folder.is_relative_to(tmp_path / 'state') and (folder / 'f').read_text() == 'x\n'
    assert caisson('gc', '--set', state).out == '0 folders removed\n' and folder.exists()
    assert caisson('gc', '--set', state, '--set', 'engine.retention_ms=0').out == '1 folder removed\n' and not folder.exists()


@pytest.mark.parametrize('options, word', [(['--work-dir', 'none'], 'the folder none does not exist'), (['--packages', 'none'], 'packages are recorded')])
@pytest.mark.parametrize('form', [[], ['--format', 'plain'], ['--format', 'brief']])
def test_a_warning_is_printed_without_a_terminal(tmp_path, options, word, form):
    done = caisson('run', *options, *form, '-l', 'python', '-c', 'print(1)', cwd=tmp_path)
    assert done.status == 0 and done.err.startswith(f'caisson: warning: {word}'), done.err
    for quiet in ('-q', '--json'):
        assert caisson('run', quiet, *options, '-l', 'python', '-c', 'print(1)', cwd=tmp_path).err == ''


def test_a_warning_about_the_record_alone_is_in_the_record_alone():
    for form in ([], ['--format', 'plain']):
        done = caisson('run', '--output', '1KiB', *form, '-l', 'bash', '-c', 'seq 1000')
        assert done.status == 0 and done.err == ''
    assert 'head and tail are kept' in caisson('run', '-v', '--output', '1KiB', '-l', 'bash', '-c', 'seq 1000').err


def test_a_work_folder_has_one_run_at_a_time(tmp_path):
    with subprocess.Popen([CAISSON, 'run', '-l', 'bash', '-c', 'echo started; sleep 1000', '--timeout', '600s', '--work-dir', str(tmp_path)],
                          stdout=subprocess.PIPE, env=environment()) as process:
        assert process.stdout.read(8) == b'started\n'
        refused(bash('ls', '--work-dir', tmp_path), 'work_dir busy', field='/work_dir')
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert bash('ls', '--work-dir', tmp_path)['status'] == 'completed'


def test_gc_takes_no_argument():
    assert caisson('gc', 'x').status == 64


# ---- what only the HTTP interface has ----

@pytest.mark.parametrize('more, field', [({'exports': [{'pattern': '*'}]}, '/exports'), ({'files': [{'id': 'file_' + '0' * 32}]}, '/files'),
                                         ({'workspace': 'w'}, '/workspace'), ({'workspace': 'w', 'work_dir': '/tmp'}, '/workspace')])
def test_nobody_keeps_files_for_the_command_line(more, field):
    done = caisson('run', '--json', '--request', '-', stdin=json.dumps({'language': 'bash', 'code': 'echo x > y', **more}).encode())
    record = json.loads(done.out)
    assert (record['status'], record['error']['field']) == ('bad_request', field)


def test_an_export_of_the_command_line_has_a_folder(tmp_path):
    done = caisson('run', '-l', 'bash', '-c', 'true', '--export', '*.csv')
    assert done.status == 64 and 'GLOB:DIR' in done.err
