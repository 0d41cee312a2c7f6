#: what: a figure with two charts, drawn without a display and saved as PNG and SVG
#: needs: matplotlib numpy
#: stdout: png 600x400, svg with a title
#: files: chart.png chart.svg
#: options: --timeout 60s
import struct
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 2 * np.pi, 100)
figure, (left, right) = plt.subplots(1, 2, figsize=(6, 4), dpi=100)
left.plot(x, np.sin(x), label="sin")
left.plot(x, np.cos(x), "--", label="cos")
left.legend()
right.bar(["a", "b", "c"], [3, 1, 2], color="tab:green")
figure.suptitle("Übersicht")
figure.savefig("chart.png")
figure.savefig("chart.svg")
plt.close(figure)

header = Path("chart.png").read_bytes()[:24]
assert header[:8] == b"\x89PNG\r\n\x1a\n"
width, height = struct.unpack(">II", header[16:24])
assert "<svg" in Path("chart.svg").read_text()
print(f"png {width}x{height}, svg with a title")
