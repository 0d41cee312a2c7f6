"""Figures of a run with the image `data`: plt.show() writes those that are open into files, and closes them."""

import sys
from posix import getcwd, lstat


def is_there(path):
    try:
        lstat(path)
    except OSError:
        return False
    return True


def use_files(pyplot):
    folder = getcwd()
    number = 0

    def show(*arguments, **settings):
        """Write the open figures to image_0000.png, image_0001.png and so on, where the program began, and close them."""
        nonlocal number
        for figure in pyplot.get_fignums():
            while is_there(path := '%s/image_%04d.png' % (folder, number)):
                number += 1
            pyplot.figure(figure).savefig(path)
            pyplot.close(figure)

    pyplot.show = show


def save_what_is_shown():
    if 'matplotlib.pyplot' in sys.modules:
        use_files(sys.modules['matplotlib.pyplot'])
    else:
        sys.meta_path.insert(0, load_part('display')['FinderOfOthers']({'matplotlib.pyplot': use_files}))
