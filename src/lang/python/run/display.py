"""What people see of an object besides its text: pictures, tables, HTML, under the names and methods of IPython.

A Bundle is a representation in several media types; each is JSON text already.  Methods of a program's objects may
fail, and then that representation is missing.  What IPython gives its users to import is here in small, in modules that
are made only when they are imported and only where IPython is not installed.
"""

import sys
from binascii import b2a_base64
from _frozen_importlib import ModuleSpec

report, chart = load_part('report'), load_part('chart')
FinderOfOthers, from_program = load_part('figures')['FinderOfOthers'], report['from_program']
quote, plain_text, document = report['quote'], report['plain_text'], report['document']

METHODS = {
    'text/html': '_repr_html_', 'text/markdown': '_repr_markdown_', 'text/latex': '_repr_latex_',
    'image/svg+xml': '_repr_svg_', 'image/png': '_repr_png_', 'image/jpeg': '_repr_jpeg_',
    'application/pdf': '_repr_pdf_', 'application/json': '_repr_json_', 'application/javascript': '_repr_javascript_',
}
CHART, TABLE = 'application/vnd.caisson.chart+json', 'application/vnd.caisson.table+json'
EXTRA_MAX = 4194304             # bytes of a chart or a table's columns: what there is besides must not crowd out the rest
TABLE_ROWS_MAX = 1000
TABLE_CELLS_MAX = 200000
METADATA_MAX = 65536
SIGNATURES = ((b'\x89PNG\r\n\x1a\n', 'image/png'), (b'\xff\xd8', 'image/jpeg'), (b'GIF8', 'image/gif'), (b'RIFF', 'image/webp'))
KINDS_SHOWN = {'pretty': 'text/plain', 'html': 'text/html', 'markdown': 'text/markdown', 'svg': 'image/svg+xml', 'png': 'image/png',
               'jpeg': 'image/jpeg', 'latex': 'text/latex', 'json': 'application/json', 'javascript': 'application/javascript',
               'pdf': 'application/pdf'}
FIGURES = 'caisson_figures'
PACKAGES = 'IPython', 'IPython.core', 'IPython.lib'
LOOKUPS = []                    # of get_ipython(): functions of the media type and the type of an object


class Bundle:
    """limit is in bytes, of all members together."""

    def __init__(self, limit):
        self.data = {}
        self.metadata = {}
        self.limit = limit
        self.is_full = False

    def put(self, kind, content):
        try:
            text = encoded(kind, content, self.limit)
        except report['Full']:
            self.is_full = True
            text = 'null'
        if text is not None:
            self.data[kind] = text

    def put_extra(self, kind, content):
        """Where it is small enough."""
        text = guarded(json_within, content, min(EXTRA_MAX, self.limit // 2))
        if text is not None:
            self.data[kind] = text

    def put_all(self, members):
        if issubclass(type(members), dict):
            for kind, content in list(dict.items(members)):
                if issubclass(type(kind), str):
                    self.put(plain_text(kind), content)

    def put_plain(self, value, text_max, members=None):
        """members are those of report.py's document of this value, which may have asked for its repr() already."""
        text = (members or {}).get('repr')
        is_all = 'truncated' not in (members or {})
        if text is None or not is_all:
            text, is_all = report['repr_within'](value, text_max)
        self.data['text/plain'] = text if is_all else text[:-1] + ' ... (truncated)"'

    def members(self):
        parts = [*self.data.items(), *self.metadata.items()]
        size = sum(len(kind) + len(text) if text.isascii() else len(kind) + len(text.encode()) for kind, text in parts)
        if self.is_full or size > self.limit:
            note = '<too large to be shown: %s; display_max=%d bytes>' % (', '.join(self.data)[:1000], self.limit)
            return {'data': '{"text/plain":%s}' % quote(note)}
        members = {'data': object_of(self.data)}
        if self.metadata:
            members['metadata'] = object_of(self.metadata)
        return members

    def document(self):
        return document(**{'metadata': '{}', **self.members()})


def object_of(members):
    return '{%s}' % ','.join('%s:%s' % (quote(name), text) for name, text in members.items())


def is_json(kind):
    return kind == 'application/json' or kind.endswith('+json')


def encoded(kind, content, limit):
    """JSON for what a method returned; None if it cannot be had.  Raises Full if it is longer than limit."""
    if is_json(kind):
        return json_within(content, limit)
    if issubclass(type(content), (bytes, bytearray, str)) and len(content) > limit:
        raise report['Full']
    if issubclass(type(content), (bytes, bytearray)):
        if kind.startswith('text/') or kind == 'image/svg+xml':
            return quote(bytes(content).decode('utf-8', 'replace'))
        return '"%s"' % b2a_base64(content, newline=False).decode()
    if issubclass(type(content), str):
        return quote(content)
    return None


def json_within(content, limit):
    out = report['Text'](limit)
    try:
        report['put_json'](out, content)
    except report['NotJson']:
        return None
    return out.joined()


def guarded(function, *arguments):
    """What it returns, or None.  An interrupt is for the whole execution."""
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None


def metadata_of(members):
    if type(members) is not dict:
        return {}
    texts = {kind: guarded(json_within, content, METADATA_MAX) for kind, content in members.items() if type(kind) is str}
    return {kind: text for kind, text in texts.items() if text is not None}


def bundle_of(value, svg, limit, text_max, members=None):
    """All that there is to see of a value."""
    kind = type(value)
    bundle = Bundle(limit)
    whole = guarded(mime_bundle, value, kind)
    if issubclass(type(whole), tuple) and len(whole) == 2:
        bundle.metadata.update(metadata_of(whole[1]))
        whole = whole[0]
    bundle.put_all(whole)
    for media, method in METHODS.items():
        function = function_for(media, kind, method)
        if function is None or media in bundle.data:
            continue
        content = guarded(from_program, function, value)
        if issubclass(type(content), tuple) and len(content) == 2:
            content, about = content
            bundle.metadata.update(metadata_of({media: about}))
        if content is not None and content is not value:
            bundle.put(media, content)
    guarded(add_table, bundle, value, kind)
    guarded(add_figure, bundle, value, svg)
    if 'text/plain' not in bundle.data:
        put_registered(bundle, value, kind) or bundle.put_plain(value, text_max, members)
    return bundle


def function_for(media, kind, method):
    """What makes this media type of an object: a function that the program has registered, or the method of its type."""
    found = [function for function in (guarded(find, media, kind) for find in LOOKUPS) if function]
    return found[0] if found else guarded(getattr, kind, method, None)


def put_registered(bundle, value, kind):
    """The text of a function that the program has registered; False if there is none."""
    function = LOOKUPS and function_for('text/plain', kind, '')
    text = guarded(from_program, function, value) if function else None
    if text is None:
        return False
    bundle.put('text/plain', text)
    return True


def mime_bundle(value, kind):
    method = getattr(kind, '_repr_mimebundle_', None)
    return None if method is None else from_program(method, value, include=None, exclude=None)


def add_table(bundle, value, kind):
    """pandas: besides text and HTML the data itself, of so many rows that it stays small."""
    pandas = sys.modules.get('pandas')
    if pandas is None or not issubclass(kind, (pandas.DataFrame, pandas.Series)):
        return
    if issubclass(kind, pandas.Series) and 'text/html' not in bundle.data:
        bundle.put('text/html', guarded(from_program, value.to_frame()._repr_html_))
    columns = value.shape[1] if len(value.shape) > 1 else 1
    rows = min(TABLE_ROWS_MAX, max(TABLE_CELLS_MAX // max(columns, 1), 1))
    bundle.data['application/json'] = plain_text(from_program(value.head(rows).to_json, orient='split', date_format='iso'))
    if len(value) > rows:
        bundle.metadata['application/json'] = '{"rows":%d,"truncated":true}' % len(value)
    if issubclass(kind, pandas.DataFrame) and value.size <= TABLE_CELLS_MAX:
        bundle.put_extra(TABLE, columns_of(value))


def columns_of(table):
    """All columns as lists; what JSON has no word for is a text, and a value that is missing is null."""
    columns = {}
    for at, name in enumerate(table.columns):
        column = table.iloc[:, at]
        columns[str(name)] = [None if is_missing else plain_cell(cell)
                              for cell, is_missing in zip(column.tolist(), column.isna().tolist())]
    return columns


def plain_cell(cell):
    if isinstance(cell, (bool, int, float, str, list, dict)) or cell is None:
        return str(cell) if isinstance(cell, float) and cell - cell != 0 else cell
    return cell.isoformat() if hasattr(cell, 'isoformat') else str(cell)


def add_figure(bundle, value, svg):
    figures = sys.modules.get('matplotlib.figure')
    if figures is None or not issubclass(type(value), figures.Figure):
        return
    try:
        content = drawn(value, svg)
    except Exception as error:
        complain('caisson: a figure could not be drawn: %s: %s\n' % (type(error).__name__, str(error).strip()))
        return
    for kind, text in content.items():
        bundle.put(kind, text)
    data = guarded(chart['chart_of'], value)
    if data is not None:
        bundle.put_extra(CHART, data)


def drawn(figure, svg):
    io = __import__('io')
    content = {}
    for kind, suffix in (('image/png', 'png'), ('image/svg+xml', 'svg'))[:2 if svg else 1]:
        out = io.BytesIO()
        from_program(figure.savefig, out, format=suffix, bbox_inches='tight')
        content[kind] = out.getvalue()
    return content


class Shown:
    """Base of HTML, Image and their kin: some data, from an argument or a file."""

    kind = 'text/plain'
    binary = False

    def __init__(self, data=None, url=None, filename=None, metadata=None):
        os = sys.modules['os']
        if filename is None and issubclass(type(data), (str, os.PathLike)) and self.is_file(os, data):
            data, filename = None, data
        if filename is not None:
            with open(filename, 'rb') as file:
                data = file.read()
            if not self.binary:
                data = data.decode('utf-8', 'replace')
        self.data = data
        self.url = url
        self.filename = filename
        self.metadata = metadata

    @staticmethod
    def is_file(os, data):
        return issubclass(type(data), os.PathLike) or (len(data) < 4096 and '\n' not in data and os.path.isfile(data))

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self.kind: self.data}, {self.kind: self.metadata} if self.metadata else {}

    def __repr__(self):
        return '<IPython.core.display.%s object>' % type(self).__name__


class HTML(Shown):
    kind = 'text/html'

    @staticmethod
    def is_file(os, data):
        return issubclass(type(data), os.PathLike)

    def _repr_html_(self):
        return self.data


class Markdown(HTML):
    kind = 'text/markdown'
    _repr_html_ = None


class Latex(Markdown):
    kind = 'text/latex'


class Math(Latex):
    def __init__(self, data=None, **others):
        super().__init__(None if data is None else '$\\displaystyle %s$' % data.strip('$'), **others)


class SVG(Shown):
    kind = 'image/svg+xml'


class Javascript(Markdown):
    kind = 'application/javascript'


class JSON(Shown):
    kind = 'application/json'

    def __init__(self, data=None, url=None, filename=None, expanded=False, metadata=None, root='root', **others):
        super().__init__(data, url, filename, {'expanded': expanded, 'root': root, **(metadata or {}), **others})
        if issubclass(type(self.data), str):
            self.data = __import__('json').loads(self.data)


class Image(Shown):
    binary = True

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None, height=None, metadata=None,
                 **others):
        if issubclass(type(data), str) and data.startswith(('http://', 'https://')):
            data, url = None, data
        super().__init__(data, url, filename, metadata)
        if self.data is None and url is None:
            raise ValueError('no image data: give data, a filename or a url')
        if self.data is not None and not issubclass(type(self.data), (bytes, bytearray)):
            raise FileNotFoundError("no such file: '%s'" % (self.data,))
        self.width, self.height = width, height
        self.kind = 'image/' + {'jpg': 'jpeg'}.get(format, format) if format else self.found_kind()

    def found_kind(self):
        return next((kind for signature, kind in SIGNATURES if (self.data or b'').startswith(signature)), 'image/png')

    def _repr_mimebundle_(self, include=None, exclude=None):
        sizes = {name: size for name, size in (('width', self.width), ('height', self.height)) if size is not None}
        if self.data is None:
            html = __import__('html').escape
            attributes = ''.join(' %s="%s"' % (name, html(str(size))) for name, size in sizes.items())
            return {'text/html': '<img src="%s"%s/>' % (html(self.url), attributes)}
        about = {**sizes, **(self.metadata or {})}
        return {self.kind: self.data}, {self.kind: about} if about else {}


class Screen:
    """display(), the modules that are ours, matplotlib's figures and pictures of PIL.

    show(value, raw, metadata) sends a DISPLAY; is_showing_saved() says whether pictures that are saved are shown.
    waiting: what else is done with modules as they are imported.  find_more() says whether there are new folders to search.
    find_shell() is what get_ipython() returns.
    """

    def __init__(self, show, is_showing_saved, waiting, find_more, find_shell):
        self.show = show
        self.find_more, self.find_shell = find_more, find_shell
        self.get_ipython = lambda: find_shell()
        self.get_ipython.__name__ = self.get_ipython.__qualname__ = 'get_ipython'
        self.is_showing_saved = is_showing_saved
        self.names = {'display': self.make_display(), 'clear_output': clear_output, 'publish_display_data': self.publish,
                      'DisplayHandle': Handle, 'DisplayObject': Shown, 'TextDisplayObject': Shown, 'Pretty': Shown}
        self.names['update_display'] = self.names['display']
        self.names.update(('display_' + name, self.make_display_of(kind)) for name, kind in KINDS_SHOWN.items())
        for kind in HTML, Image, Markdown, JSON, SVG, Latex, Math, Javascript:
            kind.__module__ = 'IPython.core.display'
            self.names[kind.__name__] = kind
        self.finder = Finder(self, waiting)
        # Before the others for what comes to be theirs, behind them for what may be installed.
        sys.meta_path.insert(0, self.finder.before)
        sys.meta_path.append(self.finder)
        for name, act in self.finder.before.waiting.items():
            if name in sys.modules:
                act(sys.modules[name])

    def make_display(self):
        def display(*objs, include=None, exclude=None, metadata=None, transient=None, display_id=None, raw=False, clear=False,
                    **others):
            """Show objects: pictures, tables, HTML, or whatever their _repr_*_ methods return."""
            for value in objs:
                self.show(value, value if raw else None, metadata)
            return Handle(display, display_id) if display_id is not None else None

        return display

    def make_display_of(self, kind):
        def display_of(*objs, raw=False, metadata=None, **others):
            """Show objects; with raw, texts or bytes of this media type."""
            for value in objs:
                self.show(value, {kind: value} if raw else None, {kind: metadata} if raw and metadata else metadata)

        return display_of

    def publish(self, data, metadata=None, **others):
        """Show an object of media types as it is."""
        self.show(data, data, metadata)

    def use_our_shell(self, module):
        """Of an IPython that is installed."""
        module.get_ipython = self.get_ipython

    def use_our_display(self, module):
        module.display = self.names['display']

    @staticmethod
    def use_small_plots(module):
        """plotly would send its library of 3 MB before the first figure, as pages without a network need it."""
        if module.renderers.default == 'plotly_mimetype+notebook' and 'PLOTLY_RENDERER' not in sys.modules['os'].environ:
            module.renderers.default = 'plotly_mimetype+notebook_connected'

    def modules(self):
        """What the modules have that are ours, by their names."""
        shell = load_part('shell')
        version = '.'.join(map(str, shell['VERSION'][:3]))
        register = {'register_%s_magic' % name: shell['register_magic'](kinds, self.find_shell)
                    for name, kinds in (('line', ['line']), ('cell', ['cell']), ('line_cell', ['line', 'cell']))}
        return {
            'IPython': {'get_ipython': self.get_ipython, 'version_info': shell['VERSION'], '__version__': version},
            'IPython.core': {}, 'IPython.lib': {},
            'IPython.display': self.names, 'IPython.core.display': self.names, 'IPython.core.display_functions': self.names,
            'IPython.core.getipython': {'get_ipython': self.get_ipython},
            'IPython.core.interactiveshell': {'InteractiveShell': shell['InteractiveShell']},
            'IPython.core.magic': register,
            'IPython.core.pylabtools': {'backend2gui': {}},
            'IPython.lib.pretty': {'pretty': repr},
        }

    def use_our_figures(self, matplotlib):
        if 'MPLBACKEND' not in sys.modules['os'].environ:
            dict.__setitem__(matplotlib.rcParams, 'backend', 'module://' + FIGURES)

    # ---- pictures

    def use_our_viewer(self, module):
        """There is no screen for Image.show() but ours."""
        save = module.Image.save

        def show(image, **settings):
            self.show(image)

        def save_and_show(image, fp, format=None, **settings):
            save(image, fp, format, **settings)
            if issubclass(type(fp), (str, sys.modules['os'].PathLike)) and self.is_showing_saved():
                self.show(image)

        save_and_show.__name__, save_and_show.__qualname__, save_and_show.__doc__ = 'save', 'Image.save', save.__doc__
        module._show, module.Image.save = show, save_and_show

    # ---- figures

    @staticmethod
    def open_figures():
        helpers = sys.modules.get('matplotlib._pylab_helpers')
        return [] if helpers is None else sorted(helpers.Gcf.get_all_fig_managers(), key=lambda manager: manager.num)

    def show_figure(self, manager):
        """Show one and close it.  One without anything in it is not worth a picture."""
        figure = manager.canvas.figure
        try:
            if figure.axes or figure.lines or figure.texts or figure.images or figure.patches:
                self.show(figure)
        finally:
            sys.modules['matplotlib._pylab_helpers'].Gcf.destroy(manager.num)

    def show_open_figures(self, *arguments, **settings):
        for manager in self.open_figures():
            self.show_figure(manager)

    def close_figure(self, value):
        """One that is the value of the execution has been drawn for that."""
        for manager in self.open_figures():
            if manager.canvas.figure is value:
                sys.modules['matplotlib._pylab_helpers'].Gcf.destroy(manager.num)

    def figures_module(self):
        from matplotlib.backend_bases import FigureManagerBase
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        screen = self

        class FigureManager(FigureManagerBase):
            def show(self):
                screen.show_figure(self)

        class FigureCanvas(FigureCanvasAgg):
            manager_class = FigureManager

        def new_figure_manager_given_figure(num, figure):
            return FigureManager(FigureCanvas(figure), num)

        def new_figure_manager(num, *arguments, FigureClass=Figure, **settings):
            return new_figure_manager_given_figure(num, FigureClass(*arguments, **settings))

        def show(*arguments, **settings):
            screen.show_open_figures()

        def draw_if_interactive():
            pass

        return {'FigureCanvas': FigureCanvas, 'FigureManager': FigureManager, 'new_figure_manager': new_figure_manager,
                'new_figure_manager_given_figure': new_figure_manager_given_figure, 'show': show,
                'draw_if_interactive': draw_if_interactive}


class Handle:
    """What display(..., display_id=...) returns.  There is nobody who could change what was shown, so it shows again."""

    def __init__(self, display, display_id):
        self.show = display
        self.display_id = display_id if issubclass(type(display_id), str) else '%x' % id(self)

    def display(self, value, **settings):
        self.show(value, **settings)

    update = display


def clear_output(wait=False):
    """What was sent is not taken back."""


class Finder:
    """For the modules of OURS, when no other finder has them; and `before`, which sees others come."""

    def __init__(self, screen, waiting):
        self.screen = screen
        self.before = FinderOfOthers({'matplotlib': screen.use_our_figures, 'PIL.Image': screen.use_our_viewer,
                                      'IPython.core.getipython': screen.use_our_shell,
                                      'IPython.core.display_functions': screen.use_our_display,
                                      'plotly.io._renderers': screen.use_small_plots, **waiting})

    def find_spec(self, name, path=None, target=None):
        if path is None and self.screen.find_more():
            found = sys.modules['_frozen_importlib_external'].PathFinder.find_spec(name)
            if found is not None:
                return found
        is_ours = name == FIGURES or (name.partition('.')[0] == 'IPython' and name in self.screen.modules())
        return ModuleSpec(name, self, is_package=name in PACKAGES) if is_ours else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        if module.__name__ == FIGURES:
            module.__dict__.update(self.screen.figures_module())
            return
        modules = self.screen.modules()
        module.__dict__.update(modules[module.__name__])
        if module.__name__ == 'IPython':       # whose parts are there without an import of their own
            for name in modules:
                __import__(name)
