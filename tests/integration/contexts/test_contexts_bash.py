"""The context runner of Bash.

    /usr/bin/python3 -m pytest -q tests/integration/contexts/test_contexts_bash.py
"""

import re
import socket
import subprocess
import time

import pytest
from contexts import BUILD, COMMANDS, Ended, Started
from runners import BASH, CHANNEL_FD, ENVIRONMENT, put_at


@pytest.fixture
def bash(tmp_path):
    context = Started('bash', tmp_path)
    yield context
    if context.channel.fileno() >= 0:
        assert context.end() == 0


def test_hello(bash):
    assert bash.hello['runner'] == 'bash' and bash.hello['context'] is True and bash.hello['version'][0].isdigit()
    assert bash.execute('echo hello').stdout == 'hello\n'


def test_everything_lasts(bash, tmp_path):
    (tmp_path / 'sub').mkdir()
    outcome = bash.execute('x=1; declare -A m=([a]=b); f() { echo "f $1 $x"; }; shopt -s extglob; export E=e; cd sub; set -o pipefail')
    assert (outcome.kinds, outcome.stdout, outcome.stderr) == ('STARTED DONE', '', '')
    outcome = bash.execute('f 2; echo "${m[a]} $(env | grep ^E=) $PWD"; [[ aab == +(a)b ]] && echo ext; set -o | grep pipefail')
    assert outcome.stdout == 'f 2 1\nb E=e %s/sub\next\npipefail       \ton\n' % tmp_path


@pytest.mark.parametrize('code, status', [('false', 1), ('(exit 7)', 7), ('true', 0), ('nothing_of_this_name', 127), ('f() { return 3; }; f', 3),
                                          ('kill -9 $BASHPID & wait $!', 137), ('', 0), ('# only a comment', 0)])
def test_status(bash, code, status):
    outcome = bash.execute(code)
    if status:
        assert outcome.kinds == 'STARTED ERROR DONE'
        assert outcome.error == {'type': 'ExitStatus', 'message': 'exit status %d' % status, 'status': status}
    else:
        assert outcome.kinds == 'STARTED DONE'
    assert bash.execute('echo on').stdout == 'on\n'


@pytest.mark.parametrize('code, expected', [
    ('cat <<EOF\na $((1 + 1))\nEOF\n', 'a 2\n'), ("cat <<'EOF'\n$x 'y'\nEOF", "$x 'y'\n"), ('for i in 1 2\ndo\n  echo $i\ndone\n', '1\n2\n'),
    ('echo "a\nb" \'c\\\'', 'a\nb c\\\n'), ('case x in\n  x) echo "é" ;;\nesac', 'é\n'), ('cat', ''), ('read x; echo "[$x]"', '[]\n'),
    ('echo a \\\n  b', 'a b\n'), ('echo "!x" \'$\' "\\`"', '!x $ `\n'), ('break; continue; echo on', 'on\n'), ('echo $0', 'bash\n'),
    ('sleep 0.1 & wait; echo $?', '0\n'), ('echo {1..3}', '1 2 3\n'), ('x=(a b); echo "${x[@]}" 3>&1', 'a b\n'), ('echo a; exec 5>&1; echo b >&5', 'a\nb\n'),
    ('ls -l /proc/self/fd | grep -c -e socket -e memfd', '0\n'), ('echo "${PS1}|$PS2|$PS4|${HISTFILE-unset}"', '\\s-\\v\\$ |> |+ |unset\n'),
])
def test_programs(bash, code, expected):
    assert bash.execute(code).stdout == expected
    assert bash.execute('echo on').stdout == 'on\n'


def test_syntax_error_runs_nothing(bash):
    for code, line in (('touch done\nif true; then fi\n', 2), ('touch done\necho "open', 2), ('touch done; )', 1)):
        outcome = bash.execute(code)
        assert outcome.kinds == 'SYNTAX DONE'
        mistake = outcome.one('SYNTAX')
        assert (mistake['type'], mistake['line'], mistake['text']) == ('SyntaxError', line, code.split('\n')[line - 1])
        assert 'bash: line %d: ' % line in outcome.stderr and '/proc' not in outcome.stderr
        assert bash.execute(code, quiet=True).stderr == ''
    assert bash.execute('[ -e done ] || echo none').stdout == 'none\n'
    assert bash.execute('a\0b').one('SYNTAX')['message'] == 'a NUL byte in the text'
    assert bash.execute('shopt -s extglob; [[ x == @(x) ]] && echo yes').stdout == 'yes\n'


def test_large_programs_and_outputs(bash):
    outcome = bash.execute('# %s\nx=%s; echo ${#x}; printf "%%0300000d" 0' % ('c' * 200000, 'v' * 100000))
    assert outcome.stdout == '100000\n' + '0' * 300000


def test_folder_and_environment(bash, tmp_path):
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    code = 'echo "$PWD ${A-none} $(printenv A)"'
    assert bash.execute(code, cwd=str(folder), env={'A': "é 'q' $x"}).stdout == "%s é 'q' $x é 'q' $x\n" % folder
    assert bash.execute(code).stdout == '%s none \n' % folder
    outcome = bash.execute('touch never', cwd='/nowhere/at/all')
    assert outcome.kinds == 'STARTED ERROR DONE' and '/nowhere/at/all' in outcome.error['message']
    assert bash.execute('ls').stdout == ''


def test_errors_that_end_other_shells(bash):
    for code in 'set -u; echo $nothing_at_all; echo no', 'echo $((1 / 0)); echo no', 'echo ${nothing:?}; echo no', 'readonly r=1; r=2; echo no':
        outcome = bash.execute('x=5; ' + code)
        assert outcome.kinds == 'STARTED ERROR DONE' and 'no' not in outcome.stdout.split()
        assert bash.execute('set +u; echo $x').stdout == '5\n'


def test_output_streams(bash, tmp_path):
    bash.ask('echo one; while [ ! -e go ]; do sleep 0.01; done; echo two')
    bash.wait_for_output('one\n')
    (tmp_path / 'go').write_text('')
    assert bash.answer().stdout == 'one\ntwo\n'


# ---- interrupts

@pytest.mark.parametrize('code', ['sh -c "echo on; exec sleep 1000"; echo no', 'echo on; while :; do :; done; echo no', 'cat <(echo on; exec sleep 1000); echo no',
                                  'f() { sh -c "echo on; exec sleep 1000"; }; f; echo no', 'x=$(echo on >&2; sleep 1000); echo no',
                                  '(sh -c "echo on; exec sleep 1000"); echo no', 'sleep 1000 | sh -c "echo on; exec sleep 1000"; echo no'])
def test_interrupt(bash, code):
    bash.execute('x=1')
    bash.ask(code)
    bash.wait_for_output('on\n', '>&2' in code)
    bash.interrupt()
    outcome = bash.answer()
    assert outcome.kinds == 'STARTED ERROR DONE' and outcome.error['status'] == 130
    assert 'no' not in outcome.stdout.split()
    assert bash.execute('echo $x').stdout == '1\n'


def test_an_interrupt_that_finds_a_copy_of_the_shell(bash):
    """It would end by itself, and the shell would take that for an answer to the interrupt."""
    bash.execute('export -n PATH; PATH=$(printf "/nowhere/%s:" {1..20000})$PATH')      # so sleep is looked for, for a while
    for _ in range(3):
        bash.ask('sleep 1000 | /bin/sh -c "echo on; exec /bin/sleep 1000"; echo no')
        bash.wait_for_output('on\n')
        bash.interrupt()
        outcome = bash.answer()
        assert outcome.kinds == 'STARTED ERROR DONE' and outcome.error['status'] == 130
        assert 'no' not in outcome.stdout.split()


def test_interrupt_while_idle_is_ignored(bash):
    for _ in range(3):
        bash.wait_until_idle()
        bash.interrupt()
        bash.wait_until_idle()
        assert bash.execute('echo on').stdout == 'on\n'


def test_an_interrupt_as_the_shell_forks_leaves_one_shell(bash):
    for n in range(40):
        bash.ask('sleep 1000; sleep 1000')
        bash.until('STARTED')
        time.sleep(0.0003 * n)
        bash.interrupt()
        bash.until('DONE')
        assert bash.execute('echo "$BASHPID"').stdout == bash.execute('echo "$$"').stdout


def test_no_interrupt_is_lost_after_started(bash):
    for n in range(50):
        bash.ask('while :; do :; done')
        bash.until('STARTED')
        time.sleep(0.0002 * n)
        bash.interrupt()
        assert bash.until('DONE')[0][0] == 'ERROR'
        bash.read_outputs()
    assert bash.execute('echo on').kinds == 'STARTED DONE'


def test_interrupt_at_the_end_breaks_nothing(bash):
    for n in range(40):
        bash.ask('sleep 0.01')
        bash.until('STARTED')
        time.sleep(0.008 + 0.0002 * n)
        bash.interrupt()
        bash.until('DONE')
        bash.wait_until_idle()
    outcome = bash.execute('echo on')
    assert outcome.stdout.endswith('on\n') and 'not found' not in outcome.stderr


# ---- the end

@pytest.mark.parametrize('code, status', [('exit 3', 3), ('set -e; false; echo no', 1), ('kill -9 $$', 137), ('exec true', 0)])
def test_a_shell_that_ends_is_the_end_of_the_context(bash, code, status):
    bash.ask(code)
    with pytest.raises(Ended):
        bash.until('DONE')
    assert bash.status() == status
    bash.channel.close()


@pytest.mark.parametrize('packet', [b'x', b'CSN1\x09\0\0\0\x05\0\0\0{}', b'CSN1\x03\0\0\0\0\0\0\0', b'CSN1\x09\0\0\0\x02\0\0\0{}',
                                    b'CSN1\x09\0\0\0\x01\0\0\0['])
def test_a_broken_frame_ends_it(bash, packet):
    bash.channel.send(packet)
    with pytest.raises(Ended):
        bash.receive()
    assert bash.status() == 70
    assert b'context.sh: ' in bash.written[bash.outputs[1]]
    bash.channel.close()


def test_without_a_channel_it_says_so():
    done = subprocess.run([*COMMANDS['bash'], ''], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, env=ENVIRONMENT)
    assert done.returncode == 70 and 'channel' in done.stderr


def test_a_bash_that_cannot_load_the_reader_says_so(tmp_path):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        done = subprocess.run([str(BUILD / 'lang' / 'bash' / 'context'), '', '5.2', '/nowhere/reader.so'], cwd=tmp_path, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=60, env=ENVIRONMENT,
                              preexec_fn=put_at({CHANNEL_FD: theirs.fileno()}), pass_fds=[CHANNEL_FD])
    assert done.returncode == 70 and 'cannot load' in done.stderr and '/nowhere/reader.so' in done.stderr


@pytest.mark.parametrize('status', [0, 1, 7, 127, 255])
@pytest.mark.parametrize('before', ['', 'set -x', 'set -v'])
def test_the_status_of_an_execution_is_found_by_the_next(bash, status, before):
    bash.execute(before)
    bash.execute('(exit %d)' % status)
    assert bash.execute('echo "$?"').stdout == '%d\n' % status
    assert bash.execute('echo "$?"').stdout == '0\n'


def test_a_status_is_found_by_a_condition(bash):
    bash.execute('ls /nonexistent')
    assert bash.execute('if [ $? -eq 0 ]; then echo OK; else echo FAILED; fi').stdout == 'FAILED\n'


def test_tracing_shows_the_commands_of_the_executions_alone(bash):
    outcome = bash.execute('set -x')
    assert (outcome.stdout, outcome.stderr) == ('', '')
    outcome = bash.execute('echo hi\nx=1')
    assert (outcome.stdout, outcome.stderr) == ('hi\n', '+ echo hi\n+ x=1\n')
    assert bash.execute('echo $-').stdout.count('x') == 1
    assert bash.execute('set +x').stderr == '+ set +x\n'
    assert bash.execute('echo two').stderr == ''


def test_echoing_shows_the_lines_of_the_executions_alone(bash):
    assert bash.execute('set -v').stderr == ''
    outcome = bash.execute('echo two\necho three')
    assert (outcome.stdout, outcome.stderr) == ('two\nthree\n', 'echo two\necho three\n')
    bash.execute('set +v')
    assert bash.execute('echo four').stderr == ''


def test_what_an_execution_sees_of_itself(bash):
    outcome = bash.execute('echo "$LINENO|$BASH_COMMAND|${#BASH_SOURCE[@]}|${#FUNCNAME[@]}|$_"\n\necho $LINENO')
    assert outcome.stdout == '1|echo "$LINENO|$BASH_COMMAND|${#BASH_SOURCE[@]}|${#FUNCNAME[@]}|$_"|0|0|/bin/bash\n3\n'
    assert bash.execute('echo "$LINENO $_"').stdout == '1 3\n'
    outcome = bash.execute('f() {\n  caller; caller 0; echo "${FUNCNAME[@]} ${BASH_LINENO[@]} $LINENO"\n}\nf')
    assert outcome.stdout == '4 NULL\nf 4 2\n'
    assert bash.execute('caller').error['status'] == 1


def test_no_prompt_is_made(bash):
    """PROMPT_COMMAND, PS0, PS1 and PS2 are the program's; before, the first was ours and could not be set."""
    assert bash.execute('echo "${PROMPT_COMMAND-none}"; readonly -p | grep -c PROMPT').stdout == 'none\n0\n'
    outcome = bash.execute("PROMPT_COMMAND='echo prompt'; PS1='one ' PS2='two '\ncat <<E\nx\nE\nif true\nthen echo \"$PROMPT_COMMAND $PS1\"; fi")
    assert (outcome.stdout, outcome.stderr) == ('x\necho prompt one \n', '')
    assert bash.execute('echo on').stdout == 'on\n'


def test_aliases_are_expanded_from_the_next_line_on(bash):
    outcome = bash.execute("alias say='echo said'\nsay it")
    assert outcome.stdout == 'said it\n'
    assert bash.execute('say more; unalias say').stdout == 'said more\n'
    bash.execute("alias open='if true; then'")
    outcome = bash.execute('open\n')
    assert outcome.error['status'] == 2 and 'unexpected end of file' in outcome.stderr
    assert bash.execute('echo "on $?"').stdout == 'on 2\n'


def test_what_standard_input_was_replaced_by_stays(bash, tmp_path):
    (tmp_path / 'lines').write_text('a\nb\n')
    bash.execute('exec < lines')
    assert bash.execute('read x; echo "$x"').stdout == 'a\n'
    assert bash.execute('cat').stdout == 'b\n'


def test_variables_for_one_execution_leave_nothing(bash):
    bash.execute('A=1; export B=2')
    outcome = bash.execute('echo $A $B $C; env | grep -c "^[ABC]="; A=5; D=6', env={'A': 'x', 'B': "y'z", 'C': '$HOME'})
    assert outcome.stdout == "x y'z $HOME\n3\n"
    assert bash.execute('echo $A $B ${C-none} $D; env | grep "^[ABC]="').stdout == '1 2 none 6\nB=2\n'
    bash.execute('echo ${nothing?}; echo no', env={'A': 'x'})
    assert bash.execute('f() { echo $A; ${nothing?}; }; f', env={'A': 'x'}).stdout == 'x\n'
    assert bash.execute('echo $A').stdout == '1\n'


def test_an_interrupt_ends_the_lines_behind_it_too(bash):
    for before in '', 'set -x', "trap 'echo exit' EXIT":
        bash.execute(before)
        bash.ask('echo on\nwhile :; do :; done\necho no\n')
        bash.wait_for_output('on\n')
        bash.interrupt()
        outcome = bash.answer()
        assert outcome.error['status'] == 130 and 'no' not in outcome.stdout.split()
        assert bash.execute('echo $?').stdout == '130\n'


# What is done before, and what then; every second text is one that asks for the state of the shell.
STATES = ['', 'set -x', 'set -v', "trap 'echo D' DEBUG", "trap 'echo E $?' ERR", 'set -u', 'set -o pipefail', "PS4='> '; set -x", 'set -f',
          "set -T; trap 'echo D $BASH_COMMAND' DEBUG", "trap 'echo bye' EXIT", 'shopt -s extglob nullglob', "alias say='echo said'; x=1"]
BODIES = [
    'echo one\necho two', 'x=5; y=$x', 'f() { echo "f $1"; return 3; }; f a', '(exit 7)', 'false | true; echo "${PIPESTATUS[@]}"', 'nothing_here',
    'if true\nthen\n  echo a\nelse echo b\nfi', 'for i in 1 2; do echo $i; done', 'cat <<E\nx $((1 + 1))\nE\ncat <<< "a\'b"', 'echo $((1 / 0))\necho on',
    'echo $(echo $(echo deep)) `echo tick`', 'return 3', 'eval "echo e; false"', 'g() { trap "echo R" RETURN; echo in; }; g; trap - RETURN',
    'declare -A m=([a]=1); local z=1; echo "${m[a]}"', 'readonly r=1; r=2; echo no', 'say it', 'echo ${nothing?gone}; echo no', 'sleep 0.01 & wait $!; echo $?',
    'trap "echo usr" USR1; kill -USR1 $$; echo on; trap - USR1', 'case x in x) echo "$_";; esac; caller', 'break; continue; shift 9; cd /nowhere',
    '{ echo a; echo b >&2; } 2>&1', 'echo "${BASH_SOURCE[@]}|${FUNCNAME[@]}|$BASH_COMMAND|$#|$0"', '! true', ':; # comment\n# another\n\n', 'diff <(echo a) <(echo a); echo $?',
]
PROBE = 'echo "$? $_ $-"; trap -p; shopt -p; set -o; alias; declare -f'
# Traces of processes that run at the same time come in any order.
AT_ONCE = re.compile(r'[&|]|<\(')
PARTS = re.compile(r'(?m)^bash: (?:cannot set terminal process group .*|no job control in this shell)\n|(?<=^\[1\] )\d+$|(?<= wait )\d+$|(?<= -USR1 )\d+$')


def plain_shell(texts, folder):
    """What one interactive Bash writes that reads the texts, with prompts of nothing."""
    script = 'unset HISTFILE; set +o history; history -c; : /bin/bash\n' + ''.join(one if one.endswith('\n') else one + '\n' for one in texts)
    done = subprocess.run(['bash', '--norc', '--noprofile', '--noediting', '+H', '-i'], executable=BASH, cwd=folder, input=script,
                          capture_output=True, text=True, check=False, timeout=60, env={**ENVIRONMENT, 'HOME': str(folder), 'PS1': '', 'PS2': ''})
    return done.stdout, PARTS.sub('', done.stderr)


def our_shell(texts, folder):
    context = Started('bash', folder)
    outcomes = [context.execute(text) for text in texts]
    context.ask('exit 0')
    with pytest.raises(Ended):
        context.until('DONE')
    context.status()
    written = [context.written[fd].decode() for fd in context.outputs]
    context.end()
    return ''.join(one.stdout for one in outcomes) + written[0], PARTS.sub('', ''.join(one.stderr for one in outcomes) + written[1])


@pytest.mark.parametrize('state', STATES)
def test_sequences_write_what_one_shell_writes(tmp_path, state):
    wrong = []
    for body in BODIES:
        texts = [state + '\n', body, PROBE, body, 'echo "$?"']
        expected, seen = plain_shell([*texts, 'exit 0'], tmp_path), our_shell(texts, tmp_path)
        if AT_ONCE.search(body):
            expected, seen = [(stdout, sorted(stderr.split('\n'))) for stdout, stderr in (expected, seen)]
        if seen != expected:
            wrong.append((body, expected, seen))
    assert wrong == []


def test_history_has_no_line_of_ours(bash):
    assert bash.execute('history').stdout == ''
