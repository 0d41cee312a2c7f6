// Types are checked by your editor; the sandbox runs the program.
type Shape =
  | { kind: "circle"; radius: number }
  | { kind: "rectangle"; width: number; height: number }
  | { kind: "triangle"; sides: [number, number, number] };

function area(shape: Shape): number {
  switch (shape.kind) {
    case "circle":
      return Math.PI * shape.radius ** 2;
    case "rectangle":
      return shape.width * shape.height;
    case "triangle": {
      const [a, b, c] = shape.sides;
      const half = (a + b + c) / 2;
      return Math.sqrt(half * (half - a) * (half - b) * (half - c));
    }
  }
}

const shapes: readonly Shape[] = [
  { kind: "circle", radius: 2 },
  { kind: "rectangle", width: 3, height: 4 },
  { kind: "triangle", sides: [3, 4, 5] },
];

const largest: Shape = shapes.reduce((best, shape) => (area(shape) > area(best) ? shape : best));
for (const shape of shapes)
  console.log(shape.kind.padEnd(10), area(shape).toFixed(2).padStart(6), shape === largest ? "<- largest" : "");
