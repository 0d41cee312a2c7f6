"""From slices to figures, ratios, goals and a table."""

import math
import statistics

from suite import GOALS, MIB

FEW = 100       # below this, the 99th percentile is the slowest of all
FIGURES = ("p50", "p99", "cpu", "private", "peak", "rate")


def percentile(samples, share):
    """The nearest rank: always a time that was measured."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


OF_SLICES = {"p50": lambda row, one: percentile(one.ns, 0.5) / 1e6,
             "cpu": lambda row, one: one.cpu_ns / one.runs / 1e6 if one.cpu_ns is not None else None,
             "rate": lambda row, one: one.runs / one.elapsed_ns * 1e9 if row.throughput else None}


class Result:
    """What came of a row: slices, or a note that says why not.

    beside has, by the name of another row, pairs of slices that were measured one after the other: its and that one's.
    """

    def __init__(self, row):
        self.row, self.slices, self.beside, self.note, self.broken = row, [], {}, None, False

    def fail(self, why):
        self.slices, self.beside, self.note, self.broken = [], {}, f"broken: {why}", True

    def figures(self, figure, slices):
        """Milliseconds, or runs per second, of each slice; or []."""
        values = [OF_SLICES[figure](self.row, one) for one in slices]
        return values if None not in values else []

    def samples(self):
        return [ns for one in self.slices for ns in one.ns]

    def value(self, figure):
        """Over all rounds, or None where it was not measured."""
        if figure in ("private", "peak"):
            return (self.row.memory or {}).get(f"{figure}_bytes") if not self.note else None
        if figure == "p99":
            return percentile(self.samples(), 0.99) / 1e6 if self.slices else None
        values = self.figures(figure, self.slices)
        return statistics.median(values) if values else None


def ratio(one, figure, other, other_figure=None):
    """Of two results, or None.  What was measured one after the other is compared, because the machine drifts."""
    other_figure = other_figure or figure
    if one.note or other.note:
        return None
    if figure == other_figure and figure in OF_SLICES:
        pairs = one.beside.get(other.row.name, []) if one is not other else [(each, each) for each in one.slices]
        values = list(zip(one.figures(figure, [pair[0] for pair in pairs]), other.figures(figure, [pair[1] for pair in pairs])))
        return statistics.median(a / b for a, b in values) if values and all(b for _, b in values) else None
    a, b = one.value(figure), other.value(other_figure)
    return a / b if a is not None and b else None


def judge(goal, results):
    """(value, "met", "missed" or "not measured")"""
    one, other = results.get(goal.row), results.get(goal.over)
    value = None
    if one and goal.figure == "cpu" and one.row.cpu_by != "cgroup":
        one = None      # the other way to count loses some of it, so it could only flatter
    if one and goal.over is None:
        value = one.value(goal.figure)
    elif one and other:
        value = ratio(one, goal.figure, other, goal.over_figure)
    if value is None:
        return None, "not measured"
    met = value <= goal.at_most if goal.at_most is not None else value >= goal.at_least
    return value, "met" if met else "missed"


UNITS = {"p50": "p50_ms", "p99": "p99_ms", "cpu": "cpu_ms", "private": "private_bytes", "peak": "peak_bytes",
         "rate": "per_second"}


def row_document(result, results):
    base = results.get(result.row.base)
    return {"name": result.row.name, "note": result.note, "base": result.row.base, "runs": sum(one.runs for one in result.slices),
            "p99_is_slowest": 0 < len(result.samples()) < FEW, "cpu_by": result.row.cpu_by,
            **{UNITS[figure]: result.value(figure) for figure in FIGURES},
            "ratios": {figure: ratio(result, figure, base) if base else None for figure in FIGURES}}


def goal_document(goal, results):
    value, state = judge(goal, results)
    return {"name": goal.name, "at_most": goal.at_most, "at_least": goal.at_least, "value": value, "state": state}


def document(results, about):
    by_name = {result.row.name: result for result in results}
    return {**about, "rows": [row_document(result, by_name) for result in results],
            "goals": [goal_document(goal, by_name) for goal in GOALS]}


# ---- for people ----


def digits(value):
    """Three that count."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.{2 - math.floor(math.log10(value)) if value > 0 else 0}f}"


def cell(row, figure, scale=1):
    value = row[UNITS[figure]]
    if value is None:
        return ["-", ""]
    mark = "*" if figure == "p99" and row["p99_is_slowest"] else ""
    times = row["ratios"][figure]
    return [digits(value / scale) + mark, f"x{digits(times)}" if times is not None else ""]


def columns(lines, left=1):
    """Text columns, the first ones to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        cells = [text.ljust(width) if at < left else text.rjust(width)
                 for at, (text, width) in enumerate(zip(line, widths))]
        yield "  ".join(cells).replace("  x", " x").rstrip()


def row_table(rows):
    heads = ["", "runs", *(word for head in ("p50 ms", "p99 ms", "CPU ms", "private MiB", "peak MiB", "runs/s")
                           for word in (head, "")), "ratios to"]
    lines, notes = [heads], []
    for row in rows:
        if row["note"]:
            notes.append([row["name"], row["note"]])
            continue
        cells = [text for figure in FIGURES
                 for text in cell(row, figure, MIB if figure in ("private", "peak") else 1)]
        base = row["base"] if row["base"] != row["name"] else "itself"
        lines.append([row["name"], str(row["runs"] or ""), *cells, base])
    yield from columns(lines)
    if any(row["p99_is_slowest"] for row in rows):
        yield f"* the slowest: there were fewer than {FEW} runs"
    if notes:
        yield ""
        yield from columns(notes, left=2)


def goal_table(goals):
    lines = [["goal", "state", "", "wanted", "measured"]]
    for goal in goals:
        scale = MIB if "MiB" in goal["name"] else 1
        sign, bound = ("<=", goal["at_most"]) if goal["at_most"] is not None else (">=", goal["at_least"])
        value = goal["value"] / scale if goal["value"] is not None else None
        lines.append([goal["name"], goal["state"], sign, f"{bound / scale:g}", digits(value)])
    return columns(lines, left=2)


def headline(found):
    """The load tells whether anybody else was at work here, which is in all figures."""
    return (f"Linux {found['kernel']} on {found['machine']}, {found['cpus']} processors, Python {found['python']}; "
            f"{found['rounds']} rounds; load before: {found['load_before']:.2f}")


def text(found):
    return "\n".join([headline(found), "", *row_table(found["rows"]), "", *goal_table(found["goals"])])
