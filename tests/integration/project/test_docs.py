"""What is written about the program, compared with what the program says of itself.

The lists of settings and profiles in caisson.conf(5) are made from docs/use/settings.md, which follows from the tables:

    /usr/bin/python3 tests/integration/project/test_docs.py --update

writes them anew.  Everything else is written by hand and compared here.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / os.environ.get('CAISSON_BUILD', 'build')
CAISSON = os.environ.get('CAISSON', str(BUILD / 'caisson'))
CONF = ROOT / 'man' / 'caisson.conf.5'


def ask(*args):
    """Without the caller's own settings."""
    env = {name: value for name, value in os.environ.items()
           if not re.match(r'CAISSON_|CODE_EXECUT|OTEL_|XDG_', name)}
    env['HOME'] = '/nonexistent'
    return subprocess.run([CAISSON, *args], stdout=subprocess.PIPE, env=env, check=True).stdout.decode()


def text(name):
    return (ROOT / name).read_text()


# ---- what the program says ----

def help_options(command='run'):
    """[(name, letter, argument, default)] of a command."""
    part = ask('help', command).partition(f'Options of {command}:\n')[2].partition('\nOptions of ')[0]
    rows = re.findall(r'^  (?:-(\w),|   ) --([\w-]+)(?: (\S+))? +(.*)$', part, flags=re.M)
    assert len(rows) == len(part.splitlines()), part
    return [(name, letter, argument, (re.findall(r'\[([^\]]+)\]$', words) or [''])[0])
            for letter, name, argument, words in rows]


def statuses():
    return json.loads(ask('schema', 'result'))['properties']['status']['enum']


def table(name, *heads):
    """The rows of the Markdown table with these heads, as lists of cells."""
    rows, inside = [], False
    for line in text(name).splitlines():
        cells = [cell.strip() for cell in line.strip('|').split('|')] if line.startswith('|') else None
        if cells is None:
            inside = False
        elif cells[:len(heads)] == list(heads):
            inside = True
        elif inside and not set(line) <= set('|-'):
            rows.append(cells)
    assert rows, f'{name} has no table with {heads}'
    return rows


def code(cell):
    return re.findall(r'`([^`]*)`', cell)


# ---- caisson.conf(5) ----

def roff(words):
    """Plain words for a line of mdoc: Markdown's quotes go, a marked sentence is emphasised, and nothing else begins a macro."""
    words = words.replace('`', '').replace('\\', '\\e').replace('-', '\\-')
    # A sentence ends its line (mandoc -T lint).
    words = re.sub(r'([.;]) +', r'\1\n', words) if words.count('. ') else words
    lines = (('\\&' if line[:1] in ".'" else '') + line for line in words.split('\n'))
    return '\n'.join(re.sub(r'^\*(.*)\.\*$', r'.Em \1 .', line) for line in lines)


def conf_lists():
    """What stands between the marks of caisson.conf(5), by the mark's name."""
    lists = {'limits': [], 'ceilings': [], 'engine': [], 'http': [], 'sessions': [], 'volumes': [], 'problems': [], 'images': [], 'docker': [], 'gateway': [], 'kubernetes': [], 'grading': [], 'review': [], 'packages': [], 'profiles': [], 'older': [], 'facts': []}
    for key, variable, default, allowed, meaning in table('docs/use/settings.md', 'key', 'variable'):
        section, name = code(key)[0].split('.', 1)
        lists[section].append(f'.It Cm {name} Pq {(code(default) or ["empty"])[0]}')
        if section != 'ceilings':
            lists[section].append(roff(meaning))
        if allowed:
            lists[section].append(f'Allowed: {allowed}.')
        lists['older'] += [f'.It Ev {older}\n.Cm {section}.{name}' for older in code(variable)[1:]]
    for name, _, meaning in table('docs/use/settings.md', 'profile', 'sets'):
        lists['profiles'] += [f'.It Cm {code(name)[0]}', roff(meaning)]
    for word, entries, meaning in table('docs/use/policies.md', 'list', 'entries'):
        lists['facts'] += [f'.It Cm {code(word)[0]} Pq {roff(entries)}', roff(meaning[0].upper() + meaning[1:] + '.')]
    return {name: '\n'.join(lines) for name, lines in lists.items()}


MARK = r'(^\.\\" begin %s: made by test_docs\.py\n).*?(^\.\\" end %s$)'


def conf_text():
    page = CONF.read_text()
    for name, lines in conf_lists().items():
        page, n = re.subn(MARK % (name, name), lambda match: match[1] + lines + '\n' + match[2], page,
                          flags=re.M | re.S)
        assert n == 1, f'{CONF} has no place for {name}'
    return page


ENTRIES = {'NAMES': 'names', 'MODULES': 'modules', 'WORDS': 'expressions', 'ABOVE': 'a number', 'ANY': '`any`'}


def test_what_rules_look_for_is_in_the_documentation():
    facts = re.findall(r'^FACT\(\w+, "(\w+)", (\w+), "(.*)"\)$', text('src/policy/analysis/facts.def'), flags=re.M)
    assert table('docs/use/policies.md', 'list', 'entries') \
        == [[f'`{word}`', ENTRIES[how], meaning.replace('\\"', '"')] for word, how, meaning in facts]


def test_the_policies_are_in_the_documentation():
    known = [one['name'] for one in json.loads(ask('policy', 'list', '--json'))]
    assert sorted(code(row[0])[0] for row in table('docs/use/policies.md', 'policy', 'what it refuses')) == sorted(known)


@pytest.mark.parametrize('page', sorted(one.name for one in (ROOT / 'man').iterdir()))
def test_manual_pages_have_no_marks_of_markdown(page):
    shown = subprocess.run(['mandoc', '-T', 'utf8', ROOT / 'man' / page], capture_output=True, text=True, check=True).stdout
    shown = re.sub('.\b', '', shown)       # bold and underlined
    assert len(shown) > 1000 and not re.findall(r'`|\*\*|(?<![\w/*])\*\w[^*\n]*\*(?![\w/*])|\]\(', shown)


def test_the_lists_of_caisson_conf_follow_from_the_tables():
    assert CONF.read_text() == conf_text(), 'run /usr/bin/python3 tests/integration/project/test_docs.py --update'


def test_the_settings_page_has_every_setting_and_its_default():
    page = {code(row[0])[0]: (code(row[1])[0], (code(row[2]) or [''])[0])
            for row in table('docs/use/settings.md', 'key', 'variable')}
    program = {s['key']: (s['variable'], s['value']) for s in json.loads(ask('config', 'show', '--json'))}
    assert page == program


def test_the_settings_page_has_every_profile():
    page = [code(row[0])[0] for row in table('docs/use/settings.md', 'profile', 'sets')]
    assert page == [p['name'] for p in json.loads(ask('profiles', 'list', '--json'))]


# ---- caisson(1) ----

SECTIONS = {'run': 'RUNNING', 'grade': 'GRADING', 'check': 'CHECKING', 'keys': 'KEYS', 'runs': 'THE AUDIT', 'logs': 'THE LOG'}


def page_options(section):
    """[(name, letter, argument, default)] as a section of the page has them."""
    part = text('man/caisson.1').partition(f'.Sh {section}\n')[2].partition('\n.Sh ')[0]
    options = []
    for line in re.findall(r'^\.It (Fl .*)$', part, flags=re.M):
        words = re.match(r'Fl (?:(\w) , Fl )?-([\w-]+)(?: Ar (.*?))?(?: Pq (\S+))?$', line)
        assert words, line
        letter, name, argument, default = (word or '' for word in words.groups())
        argument = argument.replace(' Ns = Ns Ar ', '=').replace(' Ns Op : Ns Ar ', '[:').replace(' : Ns Ar ', ':')
        options.append((name, letter, argument + (']' if '[' in argument else ''), default))
    return options


@pytest.mark.parametrize('command', SECTIONS)
def test_caisson_1_has_every_option_as_the_help_has_it(command):
    options = set(help_options(command))
    needed = options - set(help_options('run')) if command == 'grade' else options      # that section refers to those of run
    assert needed <= set(page_options(SECTIONS[command])) <= options


def part_options(command):
    """{name: (letter, argument)} of everything in caisson help sandbox, or context; limits, which are those of run, left out."""
    limits = {name for name, _, _, default in help_options('run') if default} | {'output-action'}
    rows = re.findall(r'^  (?:-(\w),|   ) --([\w-]+)(?: (\S+))? ', ask('help', command).partition('Options of every command')[0], flags=re.M)
    return {name: (letter, argument) for letter, name, argument in rows if name not in limits - {'timeout'}}


@pytest.mark.parametrize('command,section', [('sandbox', 'PERSISTENT SANDBOXES'), ('context', 'CONTEXTS')])
def test_caisson_1_has_every_option_of_sandboxes(command, section):
    part = text('man/caisson.1').partition(f'.Sh {section}\n')[2].partition('\n.Sh ')[0]
    options = part_options(command)
    assert len(options) > 8
    for name, (letter, _) in options.items():
        assert re.search(rf'^\.(It|Fl) .*\bFl -{name}\b|^\.Fl -{name}\b', part, flags=re.M) or (letter and re.search(rf'Fl {letter}\b', part)), name


def test_caisson_1_has_every_part_of_sandboxes():
    for command, section in (('sandbox', 'PERSISTENT SANDBOXES'), ('context', 'CONTEXTS')):
        part = text('man/caisson.1').partition(f'.Sh {section}\n')[2].partition('\n.Sh ')[0]
        names = re.findall(r'^  (\w+)  +', ask('help', command).partition('\nOptions of')[0], flags=re.M)
        assert len(names) > 5
        for name in names:
            assert re.search(rf'^\.It .*Cm {name} ', part + ' ', flags=re.M), name


def test_caisson_1_has_every_command():
    commands = re.findall(r"^ +'(\w+):", ask('completion', 'zsh').partition('commands=(')[2].partition('\n        )')[0], flags=re.M)
    assert len(commands) > 20
    synopsis = text('man/caisson.1').partition('.Sh SYNOPSIS')[2].partition('.Sh DESCRIPTION')[0]
    assert re.findall(r'^\.Nm\n\.Cm (\w+)$', synopsis, flags=re.M) == commands
    for command in commands:
        assert re.search(rf'^\.It Cm {command}$', text('man/caisson.1'), flags=re.M), command


def status_rows():
    """{status: cell} of docs/use/statuses.md, in the words of caisson(1)."""
    return {code(row[0])[0]: row[1] for row in table('docs/use/statuses.md', 'status', 'exit status of `caisson run`')}


def test_the_statuses_are_those_of_the_schema():
    assert list(status_rows()) == statuses()
    page = text('man/caisson.1').partition('.Sh EXIT STATUS')[2].partition('.El')[0]
    assert re.findall(r'^\.It Cm (\w+)$', page, flags=re.M) == statuses()


def test_both_pages_and_the_table_have_the_same_exit_statuses():
    fixed = {name: number for name, number in re.findall(
        r'^VALUE\(status, \w+, "(\w+)", (-?\d+),', text('src/model/fields.def'), flags=re.M)}
    page = dict(re.findall(r'^\.It Cm (\w+)\n(.*)$', text('man/caisson.1').partition('.Sh EXIT STATUS')[2], flags=re.M))
    for status, cell in status_rows().items():
        expected = fixed[status] if fixed[status] != '-1' else '0' if status == 'completed' else None
        if expected is None:
            assert re.search(r'own|signal', cell) and re.search(r'own|signal', page[status]), status
        else:
            assert (cell, page[status]) == (expected, expected), status


def test_the_meanings_of_statuses_are_those_of_the_table():
    meanings = dict(re.findall(r'^VALUE\(status, \w+, "(\w+)", -?\d+, "((?:[^"\\]|\\.)*)"\)$', text('src/model/fields.def'),
                               flags=re.M))
    page = {code(row[0])[0]: row[2].replace('`', '')
            for row in table('docs/use/statuses.md', 'status', 'exit status of `caisson run`')}
    assert page == {status: meaning.replace('\\"', '"') for status, meaning in meanings.items()}


def test_caisson_1_has_every_refused_variable():
    source = re.search(r'refused_env\[\] = \{(.*?)\n\};', text('src/model/validate.c'), flags=re.S)[1]
    refused = {name + ('*' if prefix == 'true' else '') for name, prefix in re.findall(r'\{ "(\w+)", (\w+) \}', source)}
    page = re.search(r'^Refused are those.*?\n(?=\.It)', text('man/caisson.1'), flags=re.M | re.S)[0]
    assert set(re.findall(r'^(?:and\n)?\.Ev (\S+)', page, flags=re.M)) == refused


def test_caisson_1_has_every_profile_format_and_language():
    page = text('man/caisson.1')
    for profile in json.loads(ask('profiles', 'list', '--json')):
        assert re.search(rf'^\.Cm {profile["name"]}\b', page, flags=re.M), profile["name"]
    for name in re.findall(r'^VALUE\(text_form, \w+, "(.*?)"', text('src/model/fields.def'), flags=re.M):
        assert re.search(rf'^\.Cm {name}\b', page, flags=re.M), name
    for name in ('python', 'javascript', 'typescript', 'bash'):
        assert re.search(rf'^\.Cm {name}\b', page, flags=re.M), name


def test_caisson_supervisor_8_has_every_option():
    source = set(re.findall(r'\{ "([\w-]+)", required_argument', text('src/bin/caisson-supervisor.c')))
    assert set(re.findall(r'^\.It Fl -([\w-]+) ', text('man/caisson-supervisor.8'), flags=re.M)) == source


def test_caissond_8_has_every_option():
    source = set(re.findall(r'\{ "([\w-]+)", (?:required|no)_argument', text('src/bin/caissond.c')))
    assert set(re.findall(r'^\.It Fl -([\w-]+)', text('man/caissond.8'), flags=re.M)) == source


def test_caisson_gateway_8_has_every_option():
    source = set(re.findall(r'\{ "([\w-]+)", (?:required|no)_argument', text('src/bin/caisson-gateway.c')))
    page = set(re.findall(r'^\.It Fl -([\w-]+)', text('man/caisson-gateway.8'), flags=re.M))
    assert page == source | {option[0] for option in help_options('gateway')}


def test_caisson_gateway_8_has_every_route_of_its_own():
    routes = re.findall(r'OWN\("(/[\w/]+)"', text('src/gateway/routes.c'))
    assert set(routes) - {'/health'} == set(re.findall(r'^\.It Pa (/[a-z]+|/v1/[a-z]+)$', text('man/caisson-gateway.8'), flags=re.M))


def test_caissond_8_has_every_frame():
    source = text('src/front/socket/frames.h').partition('enum frame_type {')[2].partition('}')[0]
    numbers, number = {}, 0
    for name, given in re.findall(r'FRAME_(\w+)(?: = (\d+))?', source):
        number = int(given or number + 1)
        numbers[name] = number
    page = {name: int(number) for number, name in re.findall(r'^\.It (\d+) ([A-Z]+)$', text('man/caissond.8'), flags=re.M)}
    assert page == numbers


@pytest.mark.parametrize('page', ['caisson.1', 'caisson.conf.5', 'caisson-gateway.8', 'caisson-supervisor.8', 'caissond.8'])
def test_mandoc_has_nothing_to_say(page):
    done = subprocess.run(['mandoc', '-T', 'lint', '-W', 'warning', str(ROOT / 'man' / page)], stdout=subprocess.PIPE, check=False)
    assert done.stdout.decode() == ''


# ---- README and docs ----

def test_the_page_of_limits_has_every_limit_with_its_default():
    program = {(name, default) for name, _, _, default in help_options() if default and not name.startswith('tool-')}    # docs/use/tools.md has those
    page = {(code(row[0])[0][2:], row[2]) for row in table('docs/use/limits.md', 'option', 'field')}
    assert program <= page
    fields = [code(row[1])[0] for row in table('docs/use/limits.md', 'option', 'field')]
    assert fields == list(json.loads(ask('schema', 'limits'))['properties'])


def test_the_page_of_limits_has_every_limit():
    assert [code(row[0])[0] for row in table('docs/use/limits.md', 'field', 'enforced by')] == \
        list(json.loads(ask('schema', 'limits'))['properties'])


def test_the_page_of_records_has_every_field():
    names = [name for row in table('docs/use/records.md', 'field', 'what') for name in code(row[0])]
    assert sorted(names) == sorted(json.loads(ask('schema', 'result'))['properties'])


def test_the_page_of_records_has_every_warning():
    codes = set()
    for path in (ROOT / 'src').rglob('*.c'):
        codes |= set(re.findall(r'(?:run_|launch_)?warn\w*\(&?\w+, "(\w+)"', path.read_text()))
    codes |= set(re.findall(r'#define RUN_\w+_(?:FAILED|TRUNCATED) "(\w+)"', text('src/engine/run/run.h')))
    codes |= set(re.findall(r'#define REVIEW_\w+ "(\w+)"', text('src/engine/run/review.h')))
    assert sorted(code(row[0])[0] for row in table('docs/use/records.md', 'code', 'when')) == sorted(codes)


@pytest.mark.parametrize('page', ['README.md', 'docs/use/cli.md', 'docs/use/host.md', 'docs/use/daemon.md', 'docs/use/files.md', 'docs/use/limits.md', 'docs/use/records.md', 'docs/use/statuses.md',
                                  'docs/use/sandboxes.md', 'ARCHITECTURE.md', 'SECURITY.md', 'docs/protocols/runner-channel.md', 'docs/design/runners.md', 'HACKING.md'])
def test_options_that_a_page_names_exist(page):
    known = {name for command in SECTIONS for name, *_ in help_options(command)} | {'config', 'set', 'effective', 'help', 'version', 'once'}
    known |= {*part_options('sandbox'), *part_options('context')}
    other = {'unix-socket', 'data-binary', 'user', 'scope', 'cflags', 'libs', 'list', 'all', 'changed', 'quick', 'update',   # systemd-run, pkg-config, tests/run, bench/run, test_docs.py
             'name', 'cap-drop', 'read-only', 'tmpfs', 'security-opt', 'health-cmd',     # docker run, podman run
             'pods', 'hashes'}                                                       # tests/soak/kills.py, web/build.mjs
    for option in re.findall(r'(?<![\w-])--([a-z][\w-]*)', text(page)):
        assert option in known | other, option


def test_the_records_schema_in_the_repository_is_the_programs():
    assert json.loads(text('schema/run_result.json')) == json.loads(ask('schema', 'result'))
    assert json.loads(text('schema/run_request.json')) == json.loads(ask('schema', 'request'))
    assert json.loads(text('schema/grade_request.json')) == json.loads(ask('schema', 'grade_request'))
    assert json.loads(text('schema/grade_result.json')) == json.loads(ask('schema', 'grade_result'))


def test_the_contract_of_runners_has_every_language():
    rows = {row[0]: (code(row[1])[0], code(row[2])[0], row[4]) for row in table('docs/protocols/runner-channel.md', 'language', 'interpreter')}
    sources = ''.join(path.read_text() for path in (ROOT / 'src' / 'lang').glob('*.c'))
    program = {name: (interpreter, runner, 'yes' if value == 'true' else 'no') for name, interpreter, runner, value in re.findall(
        r'\.name = "(\w+)".*?\.interpreter = "(.*?)".*?\.runner = "(.*?)".*?\.value = (\w+)', sources, flags=re.S)}
    assert rows == program


def test_the_contract_of_runners_has_every_frame():
    source = text('src/wire/wire.h').partition('enum channel_type {')[2].partition('}')[0]
    frames = re.findall(r'CHANNEL_(\w+?)\b', source)
    rows = [(row[0], int(row[1])) for row in table('docs/protocols/runner-channel.md', 'name', 'type')]
    assert rows == [(frame, number) for number, frame in enumerate(frames, 1) if frame != 'TYPES']


# ---- options that texts of the program name ----

FOREIGN = {'security-opt': 'container', 'cap-add': 'container', 'scope': 'systemd-run', 'unix-socket': 'curl', 'data-binary': '@%s', 'user': 'systemd-run',
           'disable-pip-version-check': 'pip', 'hash': 'hash', 'option': '{argument}'}   # and the program, which the same text names
OURS = ('base', 'backend', 'bin', 'egress', 'engine', 'front', 'grading', 'model', 'net', 'sandbox', 'store', 'supervisor', 'tools')


def named_options():
    """[(option, text, file)] of the string literals that are sentences; adjacent literals are one text."""
    found = []
    for folder in OURS:
        for path in sorted((ROOT / 'src' / folder).rglob('*.[chd]*')):
            if path.name == 'file_copy.c':          # a program in Bash, with options of tar and find
                continue
            source = re.sub(r'/\*.*?\*/', '', path.read_text(), flags=re.S)
            source = re.sub(r'"\s*(?:PRIu64)?\s*"', '', source)
            for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', source):
                if ' ' in literal.strip():
                    found += [(name, literal, path.relative_to(ROOT)) for name in re.findall(r'(?<![\w-])--([a-z][a-z0-9-]*[a-z0-9])', literal)]
    return found


def test_every_option_that_a_text_names_is_there():
    others = [subprocess.run([BUILD / name, '--help'], capture_output=True, text=True, check=False) for name in ('caissond', 'caisson-supervisor')]
    known = set(re.findall(r'--([a-z][a-z0-9-]+)', ask('completion', 'bash') + ask('help') + ''.join(one.stdout + one.stderr for one in others)))
    named = named_options()
    assert len(named) > 20 and {'set', 'daemon'} <= {name for name, _, _ in named} & known
    wrong = [(name, literal, str(path)) for name, literal, path in named
             if name not in known and not (name in FOREIGN and FOREIGN[name] in literal)]
    assert not wrong, wrong


def test_only_the_command_line_names_its_options():
    """What an engine says is read by callers of HTTP, MCP and the library, too: there it has the fields of a request."""
    run = {name for name, *_ in help_options('run')}
    below = [(name, literal, str(path)) for name, literal, path in named_options()
             if name in run and path.parts[1] in ('egress', 'engine', 'sandbox', 'grading', 'tools', 'backend', 'model', 'net') and path.name != 'generate.c'
             and FOREIGN.get(name, '-') not in literal]
    assert not below, below


if __name__ == '__main__':
    if sys.argv[1:] != ['--update']:
        sys.exit('usage: test_docs.py --update')
    CONF.write_text(conf_text())
