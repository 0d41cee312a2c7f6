"""One version: meson.build, NEWS.md, the Debian packages, the tags of the image, the package of Python and the programs agree."""

import json
import re
import subprocess

import pytest

from cli import BUILD, CAISSON, ROOT, environment


def text(name):
    return (ROOT / name).read_text()


VERSION = re.search(r"^project\('caisson', 'c',\n  version: '(\d+\.\d+\.\d+)',$", text('meson.build'), flags=re.M)[1]


def test_the_news_begin_with_it():
    versions = re.findall(r'^## (\d+\.\d+\.\d+)$', text('NEWS.md'), flags=re.M)
    assert versions[0] == VERSION
    assert versions == sorted(versions, key=lambda version: [int(number) for number in version.split('.')], reverse=True)


def test_the_debian_changelog_begins_with_it():
    assert re.match(r'caisson \(([\d.]+)-\d+\) ', text('debian/changelog'))[1] == VERSION


def test_the_package_of_python_has_it():
    assert re.search(r"^__version__ = '([\d.]+)'$", text('sdk/python/caisson/__init__.py'), flags=re.M)[1] == VERSION


def test_the_package_of_typescript_has_it():
    package, lock = (json.loads(text(f'sdk/typescript/{name}.json')) for name in ('package', 'package-lock'))
    assert {package['version'], lock['version'], lock['packages']['']['version']} == {VERSION}


@pytest.mark.parametrize('page', ['README.md', 'docs/use/containers.md', 'deploy/container/compose.yaml'])
def test_the_tags_of_the_image_are_it(page):
    assert set(re.findall(r'\bcaisson:(\d[\w.-]*)', text(page))) == {VERSION}


@pytest.mark.parametrize('program, option', [('caisson', '--version'), ('caisson', 'version'), ('caissond', '--version')])
def test_the_programs_print_it(program, option):
    path = CAISSON if program == 'caisson' else BUILD / program
    done = subprocess.run([path, option], capture_output=True, text=True, env=environment(), check=True)
    assert done.stdout == f'{program} {VERSION}\n'


def test_the_name_of_the_library_has_its_first_number():
    assert re.search(r"^  version: meson\.project_version\(\), soversion: '(\d+)',$", text('meson.build'), flags=re.M)[1] == VERSION.split('.')[0]
    assert re.search(r'^Package: libcaisson(\d+)$', text('debian/control'), flags=re.M)[1] == VERSION.split('.')[0]
