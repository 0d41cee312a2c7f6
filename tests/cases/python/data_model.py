#: what: dataclasses, enums, protocols, pattern matching, generics and cached properties
#: stdout: circle 3.14 square 4.00 unknown; total 7.14; frozen; sorted [Level.LOW, Level.HIGH]
import enum
import functools
from dataclasses import FrozenInstanceError, asdict, dataclass, field, replace
from typing import Protocol


class Shape(Protocol):
    def area(self) -> float: ...


@dataclass(frozen=True)
class Circle:
    radius: float

    def area(self):
        return 3.14159 * self.radius ** 2


@dataclass(order=True)
class Square:
    side: float
    tags: list = field(default_factory=list, compare=False)

    @functools.cached_property
    def size(self):
        return self.side ** 2

    def area(self):
        return self.size


@functools.total_ordering
class Level(enum.Enum):
    LOW = 1
    HIGH = 2

    def __lt__(self, other):
        return self.value < other.value

    def __repr__(self):
        return str(self)


def describe(thing):
    match thing:
        case Circle(radius=r) if r > 0:
            return f"circle {thing.area():.2f}"
        case Square(side=s):
            return f"square {s * s:.2f}"
        case _:
            return "unknown"


shapes: list[Shape] = [Circle(1), Square(2)]
assert asdict(replace(shapes[1], tags=["x"])) == {"side": 2, "tags": ["x"]} and Square(1) < Square(2)
try:
    shapes[0].radius = 2
    frozen = "changed"
except FrozenInstanceError:
    frozen = "frozen"
print(*[describe(thing) for thing in [*shapes, None]], end="; ")
print(f"total {sum(shape.area() for shape in shapes):.2f}; {frozen}; sorted {sorted([Level.HIGH, Level.LOW])}")
