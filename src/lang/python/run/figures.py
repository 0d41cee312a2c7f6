"""Pictures that a run shows, though it has no screen: plt.show() and fig.show() of matplotlib, Image.show() of PIL.

With the image `data` they are written into files.  Otherwise the first one is told on standard error, since neither library would say
that nothing is to be seen.
"""

import sys
from _frozen_importlib import _find_spec as find_spec
from posix import getcwd, lstat

from_program = load_part('report')['from_program']

TOLD = ('caisson: show() has no screen in a run, so this %s is not seen; save it with %s, or run with the image "data", '
        'where show() writes it to a file\n')
SAVED_AS_THEY_ARE = '1', 'L', 'LA', 'RGB', 'RGBA', 'I;16'       # modes of a picture


class FinderOfOthers:
    """waiting: what to do with a module once it has been executed, by its name."""

    def __init__(self, waiting):
        self.waiting = waiting

    def find_spec(self, name, path=None, target=None):
        act = self.waiting.pop(name, None)
        if act is None:
            return None
        if not self.waiting:
            sys.meta_path.remove(self)
        spec = find_spec(name, path, target)
        loader = spec and spec.loader
        if hasattr(loader, 'exec_module'):
            def exec_module(module, execute=loader.exec_module):
                execute(module)
                act(module)

            loader.exec_module = exec_module
        return spec


class Teller:
    """Says once that nothing is seen."""

    def __init__(self):
        self.has_told = False

    def tell(self, what, method):
        if not self.has_told:
            self.has_told = True
            complain(TOLD % (what, method))

    def use_figures(self, pyplot):
        def show(manager):
            """For GUI backends, show the figure window and redraw.  Here there is no screen, which is told."""
            self.tell('figure', "savefig('figure.png')")

        sys.modules['matplotlib.backend_bases'].FigureManagerBase.show = show

    def show_picture(self, image):
        self.tell('picture', "save('picture.png')")

    def use_pictures(self, module):
        def show(image, **options):
            viewers = __import__('PIL.ImageShow').ImageShow
            if has_screen() or any(type(one).__module__ != viewers.__name__ for one in viewers._viewers):
                viewers.show(image, **options)
            else:
                self.show_picture(image)

        module._show = show


class Writer(Teller):
    """Writes image_0000.png, image_0001.png and so on, where the program began, and closes the figures."""

    def __init__(self):
        super().__init__()
        self.folder = getcwd()
        self.number = 0

    def next_path(self):
        while is_there(path := '%s/image_%04d.png' % (self.folder, self.number)):
            self.number += 1
        return path

    def write_figure(self, pyplot, manager):
        from_program(manager.canvas.figure.savefig, self.next_path())
        pyplot.close(manager.num)

    def use_figures(self, pyplot):
        def show(*arguments, **settings):
            """Write the open figures to image_0000.png, image_0001.png and so on, where the program began, and close them."""
            for number in pyplot.get_fignums():
                self.write_figure(pyplot, pyplot.figure(number).canvas.manager)

        def show_one(manager):
            """Write this figure as plt.show() does, and close it."""
            self.write_figure(pyplot, manager)

        pyplot.show = show
        sys.modules['matplotlib.backend_bases'].FigureManagerBase.show = show_one

    def show_picture(self, image):
        base = sys.modules['PIL.Image'].getmodebase(image.mode)
        from_program((image if image.mode in SAVED_AS_THEY_ARE else image.convert(base)).save, self.next_path())


def has_screen():
    environ = sys.modules['os'].environ
    return 'DISPLAY' in environ or 'WAYLAND_DISPLAY' in environ


def is_there(path):
    try:
        lstat(path)
    except OSError:
        return False
    return True


def watch(shower):
    waiting = {'matplotlib.pyplot': shower.use_figures, 'PIL.Image': shower.use_pictures}
    for name in [name for name in waiting if name in sys.modules]:
        waiting.pop(name)(sys.modules[name])
    if waiting:
        sys.meta_path.insert(0, FinderOfOthers(waiting))


def save_what_is_shown():
    watch(Writer())


def tell_what_is_not_shown():
    watch(Teller())
