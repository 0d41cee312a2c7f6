"""Blocks of Python in the documentation and in the package's README compile, and the names of `caisson` that they import exist."""

import ast
import re
import subprocess
import sys

import pytest

from cli import ROOT

PAGES = ['docs/use/coming-from.md', 'sdk/python/README.md']
BLOCKS = [(page, number, block) for page in PAGES
          for number, block in enumerate(re.findall(r'^```python\n(.*?)^```$', (ROOT / page).read_text(), flags=re.M | re.S), 1)]
TRAINERS = ['verl', 'ScaleBox', 'LiveCodeBench', 'EvalPlus', 'human-eval and BigCode', 'rLLM', 'Prime', 'verifiers', 'NeMo-Skills', 'NeMo Gym', 'AReaL', 'slime',
            'open-r1 and TRL', 'OpenRLHF', 'SkyRL', 'NeMo-RL']


@pytest.mark.parametrize('page, number, block', BLOCKS, ids=[f'{page} {number}' for page, number, _ in BLOCKS])
def test_a_block_compiles_and_its_imports_exist(page, number, block):
    tree = ast.parse(block, f'{page}, block {number}')
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert imports and all((node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).split('.')[0] == 'caisson' for node in imports)
    text = '\n'.join(map(ast.unparse, imports))
    done = subprocess.run([sys.executable, '-c', text], env={'PYTHONPATH': str(ROOT / 'sdk/python')}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_each_trainer_has_a_section_with_lines_to_change_and_differences():
    text = (ROOT / PAGES[0]).read_text().partition('\n## Trainers\n')[2]
    sections = dict(re.findall(r'^### ([^\n]*)\n(.*?)(?=^### |\Z)', text, flags=re.M | re.S))
    assert list(sections) == ['Engine faults', *TRAINERS]
    for name in TRAINERS:
        assert '```' in sections[name] and re.search(r'Differences: |gives no reward', sections[name]), name
