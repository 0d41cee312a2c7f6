#: what: modules and a package that the program writes, imports, reloads and finds data in
#: stdout: area 12.0, version 2, data 'hello', main <module '__main__'
#: files: lib/__init__.py lib/shapes.py lib/data.txt
import importlib
import importlib.resources
import sys
from pathlib import Path

folder = Path("lib")
folder.mkdir()
(folder / "__init__.py").write_text("VERSION = 1\n")
(folder / "shapes.py").write_text("def area(width, height):\n    return float(width * height)\n")
(folder / "data.txt").write_text("hello")

# The program's own folder is searched first, as if the interpreter had been started with the file.
assert Path(sys.path[0]) == Path.cwd()
importlib.invalidate_caches()
import lib  # noqa: E402
from lib import shapes  # noqa: E402

(folder / "__init__.py").write_text("VERSION = 1 + 1\n")
importlib.reload(lib)
data = importlib.resources.files(lib).joinpath("data.txt").read_text()
assert not list(folder.rglob("*.pyc")), "bytecode is not wanted among the outputs"
print(f"area {shapes.area(3, 4)}, version {lib.VERSION}, data {data!r}, main {str(sys.modules['__main__'])[:18]}")
