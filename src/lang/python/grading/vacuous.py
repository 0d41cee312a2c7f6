"""Comparisons of libraries that nothing passes: pytest.approx(3) equals an empty array, since no item of it is another, and so does
numpy.allclose().  In the process of the tests, what is empty equals only what is empty (role `tests`).

A library is imported by the tests if they want it, so this waits for that.
"""

import sys
from functools import wraps

ARRAYS = ('assert_allclose', 'assert_almost_equal', 'assert_approx_equal', 'assert_array_almost_equal', 'assert_array_almost_equal_nulp', 'assert_array_equal',
          'assert_array_less', 'assert_array_max_ulp', 'assert_equal')


def is_one_empty(numpy, one, other):
    """Whether just one of two values has no items.  What is no array, and no number, is none of our business."""
    try:
        sizes = [numpy.size(value) if isinstance(value, (list, tuple, int, float, complex, numpy.ndarray, numpy.generic)) else 1 for value in (one, other)]
    except Exception:
        return False
    return (sizes[0] == 0) != (sizes[1] == 0)


def comparing(numpy, function, different):
    """A function of two arrays, which differ if just one of them is empty."""
    @wraps(function)
    def compare(*positional, **named):
        if len(positional) > 1 and is_one_empty(numpy, *positional[:2]):
            return different()
        return function(*positional, **named)
    return compare


def differ():
    raise AssertionError('an empty array is compared with one that is not')


def change_numpy(numpy):
    for name in 'allclose', 'array_equiv':
        setattr(numpy, name, comparing(numpy, getattr(numpy, name), lambda: False))


def change_testing(testing):
    for name in ARRAYS:
        if hasattr(testing, name):
            setattr(testing, name, comparing(sys.modules['numpy'], getattr(testing, name), differ))


def change_approx(module):
    equals = module.ApproxScalar.__eq__

    def __eq__(self, actual):
        numpy = sys.modules.get('numpy')
        return not (numpy and isinstance(actual, numpy.ndarray) and actual.size == 0) and equals(self, actual)

    module.ApproxScalar.__eq__ = __eq__


CHANGES = {'numpy': [change_numpy], 'numpy.testing': [change_testing], '_pytest.python_api': [change_approx]}


class Waiting:
    """Among the finders of modules: it finds none, and looks at what the others find."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        changes = CHANGES.get(name)
        if changes is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is Waiting else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    change_when_loaded(spec.loader, changes)
                return spec
        return None


def change_when_loaded(loader, changes):
    execute = loader.exec_module

    def exec_module(module):
        execute(module)
        for change in changes:
            change(module)

    loader.exec_module = exec_module


# ------------------------------------------------------------------------------------------- what is changed in the library

def notice_seeds(outside):
    """A seed of ours is one of the submission's as well, as it would be in one process."""
    def change(module, name):
        seed = module.seed

        def seeding(value=None, *rest, **more):
            seed(value, *rest, **more)
            if type(value) in (int, float, str):
                outside.seeds.append([name, value])

        module.seed = seeding
    return {'random': [lambda module: change(module, 'random')], 'numpy.random': [lambda module: change(module, 'numpy')]}


def notice_patches(outside):
    def change_mock(mock):
        enter = mock._patch.__enter__

        def __enter__(self):
            outside.touch(self.getter(), self.attribute)
            return enter(self)

        mock._patch.__enter__ = __enter__
        change = mock._patch_dict._patch_dict

        def _patch_dict(self):
            change(self)
            if self.in_dict is sys.modules:
                outside.unable = 'modules of the submission cannot be replaced'

        mock._patch_dict._patch_dict = _patch_dict

    def change_monkeypatch(module):
        for name in 'setattr', 'delattr':
            setattr(module.MonkeyPatch, name, touching(module, getattr(module.MonkeyPatch, name)))

    def touching(module, function):
        def touch(self, target, name=module.notset, *rest, **more):
            if isinstance(target, str):
                attribute, place = module.derive_importpath(target, False)
                outside.touch(place, attribute)
            else:
                outside.touch(target, name)
            return function(self, target, name, *rest, **more)
        return touch

    return {'unittest.mock': [change_mock], '_pytest.monkeypatch': [change_monkeypatch]}


def wait_for_libraries(outside):
    for more in notice_seeds(outside), notice_patches(outside):
        for name, changes in more.items():
            CHANGES.setdefault(name, []).extend(changes)
    for name, changes in CHANGES.items():
        for change in changes if name in sys.modules else ():
            change(sys.modules[name])
    sys.meta_path.insert(0, Waiting)
