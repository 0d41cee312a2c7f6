"""The recipes of HACKING.md, compared with the tree: each path exists, and each symbol is in its file.

A row of a recipe is "`path`: `symbol`, `symbol`; `path` ...".  The recipe for a limit is complete: each file of the sources that names its
example is in the recipe, or in its list of reasons.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PATH = r'`((?:[\w.-]+/)*[\w.-]+\.\w+|(?:[\w.-]+/)+[\w.-]+)`'
LIMIT = 'pids'

sys.path.insert(0, str(ROOT / 'tests' / 'lint'))


def recipes():
    """{name: text} of all recipes."""
    part = re.search(r'^## Recipes\n(.*?)^## ', (ROOT / 'HACKING.md').read_text(), flags=re.M | re.S)[1]
    return dict(re.findall(r'^### ([^\n]+)\n(.*?)(?=^### |\Z)', part, flags=re.M | re.S))


def recipe(name):
    return recipes()[name]


def rows(text):
    """First cells of the tables, without the heads."""
    return [row for row in re.findall(r'^\| (.*?) \| ', text, flags=re.M) if row.startswith('`')]


def entries(text):
    """[(path, [symbol])] of a recipe."""
    found = []
    for row in rows(text):
        for entry in row.split('; '):
            paths, _, symbols = entry.partition(': ')
            found += [(path, re.findall(r'`([^`]+)`', symbols)) for path in re.findall(PATH, paths)]
    return found


def named(word):
    """Paths of the sources in whose code the word is."""
    from tap import code_of     # pylint: disable=import-outside-toplevel
    listed = subprocess.run(['git', '-c', 'safe.directory=*', 'ls-files', '-z', 'src'], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [path for path in listed.split('\0') if re.search(r'\.(c|h|def)$', path) and (ROOT / path).is_file()]
    return {path for path in paths if re.search(rf'\b{word}\b', code_of((ROOT / path).read_text()) if path.endswith('.c') else (ROOT / path).read_text())}


WITH_TABLES = [name for name, text in recipes().items() if rows(text)]


def test_the_recipes_of_parts_have_tables():
    assert {'A field of a request or of the record', 'A limit', 'A setting', 'A language', 'A backend'} <= set(WITH_TABLES)


@pytest.mark.parametrize('name', WITH_TABLES)
def test_a_recipe_names_files_that_exist(name):
    found = entries(recipe(name))
    assert len(found) > 2
    assert [path for path, _ in found if not (ROOT / path).exists()] == []


@pytest.mark.parametrize('name', WITH_TABLES)
def test_a_recipe_names_symbols_that_are_in_their_files(name):
    missing = [(path, symbol) for path, symbols in entries(recipe(name)) for symbol in symbols if symbol not in (ROOT / path).read_text()]
    assert missing == []


def test_other_recipes_name_files_that_exist():
    text = re.search(r'^## Recipes\n(.*?)^## ', (ROOT / 'HACKING.md').read_text(), flags=re.M | re.S)[1]
    paths = [path for path in re.findall(PATH, text) if '/' in path and 'NAME' not in path and '*' not in path]
    assert len(paths) > 40
    assert [path for path in paths if not (ROOT / path).exists() and not path.startswith('build/')] == []


def test_the_recipe_for_a_limit_has_every_file_that_names_one():
    files = {path for path, _ in entries(recipe('A limit'))}
    assert sorted(named(LIMIT) - files) == []


def test_reasons_are_for_files_that_name_the_limit():
    reasons = recipe('A limit').partition('These files name the limit')[2]
    assert [path for path, _ in entries(reasons) if not re.search(rf'\b{LIMIT}\b', (ROOT / path).read_text())] == []
