"""Python in images: forked from a zygote of the image, which imports what the image names."""

import time

import pytest

from cli import caisson
from daemon import until
from image_archives import member, python_root, write
from web import Web

SEEN = 'import sys; print(open("/etc/marker").read(), end=""); print("json" in sys.modules, "heavy" in sys.modules)'
HEAVY = b'import time\ntime.sleep(0.3)\nVALUE = "heavy"\n'


def imported(place, **images):
    place.chmod(0o755)
    for name, members in images.items():
        done = caisson('image', 'import', write(place / f'{name}.tar', members), '--set', f'images.dir={place}/store')
        assert done.status == 0, done.err


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    place = tmp_path_factory.mktemp('zygotes')
    library = '/usr/lib/python3/dist-packages/heavy.py'
    preload = member('usr/share/caisson/preload', b'# modules that most programs need\nheavy, absent\n')
    without = [(info, content) for info, content in python_root() if '/json' not in info.name]
    imported(place, plain=python_root(), heavy=[*python_root(), member(library[1:], HEAVY), preload], broken=without)
    (place / 'state').mkdir()
    web = Web(place / 'state', '--set', f'images.dir={place}/store')
    yield web
    web.daemon.stop()


def output(web, image, code, **more):
    status, _, record = web.ask('POST', '/v1/runs', {'language': 'python', 'image': image, 'code': code, **more})
    assert status == 200 and record['status'] == 'completed', record
    return record['stdout']


def test_the_modules_of_the_library_are_loaded(web):
    assert output(web, 'plain', SEEN) == 'in the image\nFalse False\n'
    until(lambda: output(web, 'plain', SEEN) == 'in the image\nTrue False\n')


def test_the_modules_that_the_image_names_are_loaded(web):
    until(lambda: output(web, 'heavy', SEEN) == 'in the image\nTrue True\n')
    assert output(web, 'heavy', 'import heavy; print(heavy.VALUE, heavy.__file__)').startswith('heavy /usr/lib/python3')


def test_a_zygote_serves_its_image_and_no_other(web):
    until(lambda: output(web, 'heavy', SEEN).endswith('True True\n'))
    code = 'import sys, os; print(os.path.exists("/etc/marker"), "heavy" in sys.modules)'
    assert output(web, 'system', code) == 'False False\n'
    assert output(web, 'plain', code) == 'True False\n'


def test_the_run_after_sees_no_file_of_the_run_before(web):
    until(lambda: output(web, 'heavy', SEEN).endswith('True True\n'))
    code = 'import os; print(os.listdir("/tmp"), os.path.exists("f")); open("/tmp/f", "x"); open("f", "x")'
    assert {output(web, 'heavy', code) for _ in range(5)} == {'[] False\n'}


def test_an_image_whose_python_makes_no_zygote_has_cold_runs(web):
    def failures():
        text = web.ask('GET', '/metrics')[2].decode()
        return int(text.partition('caisson_zygote_failures_total{image="packages"} ')[2].split('\n')[0] or 0)
    before = failures()
    assert output(web, 'broken', 'print(1)') == '1\n'
    until(lambda: failures() == before + 1)
    for _ in range(3):
        assert output(web, 'broken', 'print(1)') == '1\n'
        time.sleep(0.5)
    assert failures() == before + 1            # the next attempt is a minute later


def test_an_image_that_has_the_name_of_another_gets_a_zygote_of_its_own(tmp_path):
    imported(tmp_path, it=[*python_root(), member('etc/which', b'first')])
    (tmp_path / 'state').mkdir()
    web = Web(tmp_path / 'state', '--set', f'images.dir={tmp_path}/store')
    code = 'import sys; print(open("/etc/which").read(), "json" in sys.modules)'
    try:
        until(lambda: output(web, 'it', code) == 'first True\n')
        archive = write(tmp_path / 'new.tar', [*python_root(), member('etc/which', b'second')])
        assert caisson('image', 'import', archive, '--name', 'it', '--replace', '--set', f'images.dir={tmp_path}/store').status == 0
        assert output(web, 'it', code) == 'second False\n'
        until(lambda: output(web, 'it', code) == 'second True\n')
    finally:
        web.daemon.stop()
