"""What a run shows, though it has no screen: told without the image `data`, and written into files with it.

Programs are started cold, and forked from a zygote that has matplotlib and one that has not.
"""

import subprocess

import pytest
from runners import PYTHON, runner_of
from zygotes import Zygote


def has(modules):
    return subprocess.run([PYTHON, '-c', 'import ' + modules], capture_output=True, check=False).returncode == 0


if not has('matplotlib, PIL'):
    pytest.skip('needs matplotlib: not here', allow_module_level=True)
PLOT = 'import matplotlib.pyplot as plt\nplt.plot([1, 2])\n'
PICTURE = 'from PIL import Image\nimage = Image.new("RGB", (4, 4))\n'
SHOWS = {
    'plt.show': (PLOT + 'plt.show()\n', 'savefig(', 1),
    'fig.show': (PLOT + 'plt.gcf().show()\nplt.show()\n', 'savefig(', 1),
    'from import': ('from matplotlib.pyplot import plot, show\nplot([1, 2])\nshow()\nshow()\n', 'savefig(', 1),
    'two figures': (PLOT + 'plt.figure()\nplt.show()\n', 'savefig(', 2),
    'pandas': ('import pandas as pd, matplotlib.pyplot as plt\npd.Series([1, 2]).plot()\nplt.show()\n', 'savefig(', 1),
    'Image.show': (PICTURE + 'image.show()\n', 'save(', 1),
    'Image.show of another mode': (PICTURE + 'image.convert("CMYK").show("title")\nimage.convert("P").show()\n', 'save(', 2),
    'ImageShow': (PICTURE + 'from PIL import ImageShow\nclass V(ImageShow.Viewer):\n    def show_image(self, image, **_): print("mine")\n'
                  'ImageShow.register(V(), 0)\nimage.show()\n', '', 0),
    'no figure': ('import matplotlib.pyplot as plt\nplt.show()\n', '', 0),
    'another show': ('def show(): print("mine")\nshow()\n', '', 0),
    'nothing is shown': (PLOT + 'plt.savefig("a.png")\n', '', 0),
}
NEEDS = {'pandas': 'pandas'}


@pytest.fixture(scope='module', params=['system', 'data'])
def zygote(request, tmp_path_factory):
    zygote = Zygote(tmp_path_factory.mktemp('figures'), request.param, usual='figures=1' if request.param == 'data' else '')
    zygote.has_files = request.param == 'data'
    yield zygote
    zygote.stop()


@pytest.fixture
def forked(zygote):
    for path in zygote.work.iterdir():
        path.unlink()

    def run(source):
        (zygote.work / 'main.py').write_text(source)
        return zygote.run(zygote.work, ['figures=1' if zygote.has_files else '', str(zygote.work / 'main.py')])

    run.folder, run.has_files = zygote.work, zygote.has_files
    return run


@pytest.fixture(params=[False, True])
def cold(request, tmp_path):
    start = runner_of('cold', tmp_path)

    def run(source):
        return start('main.py', source, options='figures=1' if request.param else '', environment={'MPLCONFIGDIR': '/tmp'})

    run.folder, run.has_files = tmp_path, request.param
    return run


def check(run, name):
    source, word, pictures = SHOWS[name]
    if name in NEEDS and not has(NEEDS[name]):
        pytest.skip('needs %s: not here' % NEEDS[name])
    outcome = run(source)
    assert outcome.status == 0, outcome.stderr
    if run.has_files:
        assert 'caisson:' not in outcome.stderr
        assert sorted(path.name for path in run.folder.glob('image_*')) == ['image_%04d.png' % number for number in range(pictures)]
    else:
        assert outcome.stderr.count('caisson: show() has no screen') == bool(word) and word in outcome.stderr
        assert not list(run.folder.glob('image_*'))
    assert ('mine\n' in outcome.stdout) == ('mine' in source)


@pytest.mark.parametrize('name', SHOWS)
def test_what_a_forked_run_shows(forked, name):
    check(forked, name)


@pytest.mark.parametrize('name', SHOWS)
def test_what_a_cold_run_shows(cold, name):
    check(cold, name)


def test_what_another_file_of_the_program_shows_is_told(tmp_path):
    run = runner_of('cold', tmp_path)
    outcome = run('main.py', 'import plots\n', files={'plots.py': SHOWS['plt.show'][0]}, environment={'MPLCONFIGDIR': '/tmp'})
    assert outcome.stderr.count('caisson: show() has no screen') == 1


def test_a_missing_glyph_is_told_of_the_line_that_shows(forked, cold):
    for run in forked, cold:
        outcome = run('import matplotlib.pyplot as plt\nplt.title("\u4e2d")\n\nplt.show()\nplt.figure().suptitle("\u6587")\nplt.gcf().show()\n')
        lines = [line.partition(': UserWarning: Glyph')[0].rpartition('/')[2] for line in outcome.stderr.splitlines() if 'Glyph' in line]
        assert lines == (['main.py:4', 'main.py:6'] if run.has_files else []), outcome.stderr


def test_a_program_that_shows_nothing_of_them_has_the_usual_finders(forked):
    outcome = forked('import sys\nprint([str(one) for one in sys.meta_path])\n')
    assert 'FinderOfOthers' not in outcome.stdout


def test_a_warning_of_the_value_names_the_program(forked, cold):
    for run in forked, cold:
        outcome = run('import warnings\nclass W:\n    def __repr__(self):\n        warnings.warn("w", stacklevel=2)\n        return "r"\n\nW()\n')
        assert '/main.py:7: UserWarning: w' in outcome.stderr and outcome.value['repr'] == 'r', outcome.stderr
