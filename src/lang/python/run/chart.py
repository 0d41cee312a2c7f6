"""What a figure of matplotlib shows, as data: which kind of chart it is, its labels and scales, and the values themselves.

A figure is taken to be what its axes hold: lines only, markers only, wedges only, bars only, boxes with their whiskers.
Everything else is a chart of an unknown type, that has a title.  All numbers are floats, because readers in languages that
tell the two apart want one type; what is no number is null.
"""

import sys

UNIT = r'\s\((.*?)\)|\[(.*?)\]'
ROUND = '%.12g'         # geometry that went through a path is off by some of the last bits


def chart_of(figure):
    """None where there are no axes."""
    axes = figure.get_axes()
    if not axes:
        return None
    if len(axes) == 1:
        return chart_of_axes(axes[0])
    title = figure._suptitle.get_text() if figure._suptitle is not None else ''
    return {'type': 'superchart', 'title': title or None, 'elements': [chart_of_axes(one) for one in axes]}


def chart_of_axes(axes):
    kind = kind_of(axes)
    chart = {'type': kind, 'title': axes.get_title() or None}
    if kind not in ('pie', 'unknown'):
        chart.update(labels_of(axes))
    if kind in ('line', 'scatter'):
        chart.update(scale_of(axes.xaxis, 'x'))
        chart.update(scale_of(axes.yaxis, 'y'))
    chart['elements'] = ELEMENTS[kind](axes, chart)
    return chart


def kind_of(axes):
    lines, patches = sys.modules['matplotlib.lines'], sys.modules['matplotlib.patches']
    held = [*axes.lines, *axes.collections, *axes.patches, *axes.images, *axes.tables, *axes.artists]
    data = [one for one in held if not (isinstance(one, lines.Line2D) and is_span(axes, one))]
    if all(isinstance(one, lines.Line2D) for one in held):
        return 'line'
    if all(isinstance(one, (patches.PathPatch, lines.Line2D)) for one in held):
        return 'box_and_whisker'
    for kind, classes in (('scatter', sys.modules['matplotlib.collections'].PathCollection), ('pie', patches.Wedge),
                          ('bar', patches.Rectangle)):
        if all(isinstance(one, classes) for one in data):
            return kind
    return 'unknown'


def is_span(axes, line):
    """axhline() and axvline(): lines across all of the axes, which are no data."""
    return line.get_transform() != axes.transData and len(line.get_xdata()) == 2


def labels_of(axes):
    import re
    found = {}
    for name, text in ('x', axes.get_xlabel()), ('y', axes.get_ylabel()):
        unit = re.search(UNIT, text)
        found[name + '_label'] = text or None
        found[name + '_unit'] = (unit[1] or unit[2] or None) if unit else None
    return found


def turn(chart):
    """Of bars that lie the categories are at the left; they are x all the same."""
    for name in 'label', 'unit':
        chart['x_' + name], chart['y_' + name] = chart['y_' + name], chart['x_' + name]


# ---- scales

def is_date(axis):
    converter = getattr(axis, 'converter', None)
    dates = sys.modules.get('matplotlib.dates')
    return dates is not None and isinstance(converter, (dates.DateConverter, dates._SwitchableDateConverter))


def scale_of(axis, name):
    ticks = [float(tick) for tick in axis.get_majorticklocs()]
    labels = [label.get_text() for label in axis.get_ticklabels()]
    scale = axis.get_scale()
    if is_date(axis):
        num2date = sys.modules['matplotlib.dates'].num2date
        ticks, scale = [num2date(tick).isoformat() for tick in ticks], 'datetime'
    elif scale == 'linear' and is_categorical(axis, ticks, labels):
        scale = 'categorical'
    return {name + '_ticks': ticks, name + '_tick_labels': labels, name + '_scale': scale}


def is_categorical(axis, ticks, labels):
    """By what was plotted, or by labels of its own for 0, 1, 2..."""
    if type(getattr(axis, 'converter', None)).__name__ == 'StrCategoryConverter':
        return True
    return bool(ticks) and all(tick == at and label != str(at) for at, (tick, label) in enumerate(zip(ticks, labels)))


# ---- values

def plain(value):
    """One coordinate: a float, a text, or None."""
    if hasattr(value, 'isoformat'):
        return value.isoformat()
    if type(value).__name__ == 'datetime64':
        return str(value.astype('datetime64[s]'))
    if isinstance(value, str):
        return str(value)
    if value is sys.modules['numpy'].ma.masked:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if number - number == 0 else None


def rounded(value):
    return float(ROUND % value)


def numbered(label, begin, name):
    """Artists without a label have one like _child0."""
    number = label[len(begin):]
    return '%s %s' % (name, number) if label.startswith(begin) and number.isdigit() else label


def lines_of(axes, chart):
    return [{'label': numbered(str(line.get_label()), '_child', 'Line'),
             'points': [[plain(x), plain(y)] for x, y in zip(line.get_xdata(), line.get_ydata())]}
            for line in axes.lines if not is_span(axes, line)]


def markers_of(axes, chart):
    def points(collection):
        num2date = sys.modules['matplotlib.dates'].num2date if is_date(axes.xaxis) or is_date(axes.yaxis) else None
        for x, y in collection.get_offsets():
            x, y = plain(x), plain(y)
            yield [num2date(x).isoformat() if is_date(axes.xaxis) and x is not None else x,
                   num2date(y).isoformat() if is_date(axes.yaxis) and y is not None else y]

    return [{'label': str(one.get_label()), 'points': list(points(one))} for one in axes.collections]


def wedges_of(axes, chart):
    return [{'label': str(wedge.get_label()), 'angle': float(abs(round(wedge.theta2 - wedge.theta1, 4))), 'radius': float(wedge.r)}
            for wedge in axes.patches]


def name_at(axis, position, size):
    """The label of the tick where a bar or a box stands, or its place."""
    for tick, label in zip(axis.get_majorticklocs(), axis.get_ticklabels()):
        if abs(tick - position) <= size / 2 and label.get_text():
            return label.get_text()
    return '%g' % position


def bars_of(axes, chart):
    found, lying = [], False
    for container in axes.containers:
        rectangles = [one for one in container if isinstance(one, sys.modules['matplotlib.patches'].Rectangle)]
        group = numbered(str(container.get_label()), '_container', 'Group')
        lies = getattr(container, 'orientation', 'vertical') == 'horizontal'
        lying = lying or lies
        for one in rectangles:
            begin, size, value = ((one.get_y(), one.get_height(), one.get_width()) if lies else
                                  (one.get_x(), one.get_width(), one.get_height()))
            found.append({'label': name_at(axes.yaxis if lies else axes.xaxis, begin + size / 2, abs(size)), 'group': group,
                          'value': plain(value)})
    if lying:
        turn(chart)
    return found


# ---- boxes: nothing says of a line to which box it belongs, or as what; but where it lies does

class Box:
    def __init__(self, patch):
        vertices = patch.get_path().vertices
        self.low, self.high = vertices.min(axis=0), vertices.max(axis=0)
        self.lines = []

    def side(self, axis):
        return rounded(self.low[axis]), rounded(self.high[axis])

    def has(self, line, axis):
        """Its line if the middle of that is the middle of the box."""
        low, high = self.side(axis)
        return bool(line[axis]) and low <= (min(line[axis]) + max(line[axis])) / 2 <= high


def line_data(line):
    return [[rounded(value) for value in line.get_xdata(orig=False)], [rounded(value) for value in line.get_ydata(orig=False)]]


def boxes_of(axes, chart):
    boxes = [Box(patch) for patch in axes.patches]
    lines = [line_data(line) for line in axes.lines if not is_span(axes, line)]
    along = int(not is_lying(boxes, lines))
    across = 1 - along
    if not along:
        turn(chart)
    for line in lines:
        box = next((one for one in boxes if one.has(line, across)), None)
        if box is not None:
            box.lines.append(line)
    axis = axes.xaxis if along else axes.yaxis
    return [element_of(box, axis, along, across) for box in boxes]


def is_lying(boxes, lines):
    """A whisker leaves its box at the middle of a side; medians and caps that are parallel to it do not reach out of it."""
    for axis in 1, 0:
        for box in boxes:
            middle = rounded(sum(box.side(1 - axis)) / 2)
            low, high = box.side(axis)
            for line in lines:
                if (len(line[0]) == 2 and line[1 - axis] == [middle, middle]
                        and (min(line[axis]) < low or max(line[axis]) > high)):
                    return axis == 0
    return False


def element_of(box, axis, along, across):
    first, third = box.side(along)
    low, high = box.side(across)
    whiskers = [line[along] for line in box.lines if len(line[0]) == 2 and line[across][0] == line[across][1]]
    values = [first, third, *(value for pair in whiskers for value in pair)]
    inside = [line for line in box.lines if len(line[0]) == 2 and line[along][0] == line[along][1] and first <= line[along][0] <= third]
    # Where a whisker has no length its cap lies on the box's edge, and is shorter.
    inside.sort(key=lambda line: abs(line[across][1] - line[across][0]))
    points = [value for line in box.lines if line[across] and min(line[across]) == max(line[across]) for value in line[along]]
    return {'label': name_at(axis, (low + high) / 2, high - low), 'min': min(values), 'first_quartile': first,
            'median': inside[-1][along][0] if inside else None, 'third_quartile': third, 'max': max(values),
            'outliers': [value for value in points if not min(values) <= value <= max(values)]}


ELEMENTS = {'line': lines_of, 'scatter': markers_of, 'bar': bars_of, 'pie': wedges_of, 'box_and_whisker': boxes_of,
            'unknown': lambda axes, chart: []}
