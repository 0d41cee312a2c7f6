//: what: enums, constant enums, namespaces and parameter properties, which need code and not only blanks
//: stdout: 1 Green 4 up 3.14 Point(3, 4) 5
enum Colour { Red, Green, Blue = 'blue' as any }
enum Flag { None = 0, Read = 1 << 0, Write = 1 << 1, Both = Read | Write }
enum Direction { Up = 'up', Down = 'down' }

namespace Geometry {
  export const pi = 3.14;
  export class Point {
    constructor(public readonly x: number, private y: number) {}
    length(): number { return Math.hypot(this.x, this.y); }
    toString(): string { return `Point(${this.x}, ${this.y})`; }
  }
}

function isFlag(value: number): value is Flag {
  return value in Flag;
}

if (!isFlag(3) || Flag[3] !== 'Both')
  throw new Error('enum has no reverse mapping');
const point = new Geometry.Point(3, 4);
console.log(Colour.Green, Colour[1], Flag.Both + 1, Direction.Up, Geometry.pi, String(point), point.length());
