//: what: discriminated unions, narrowing, exhaustiveness, type guards and the satisfies operator
//: stdout: circle 12.57 rect 6.00 text 5 | port 8080 | never reached 0
//: vm: yes
type Shape =
  | { kind: 'circle'; radius: number }
  | { kind: 'rect'; width: number; height: number }
  | { kind: 'text'; text: string };

let unreachable = 0;

function never(value: never): never {
  unreachable++;
  throw new Error(`unexpected ${JSON.stringify(value)}`);
}

function measure(shape: Shape): string {
  switch (shape.kind) {
  case 'circle': return (Math.PI * shape.radius ** 2).toFixed(2);
  case 'rect': return (shape.width * shape.height).toFixed(2);
  case 'text': return String(shape.text.length);
  default: return never(shape);
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

const config = { host: 'localhost', port: 8080 } satisfies Record<string, string | number>;
const port: number = config.port;
const shapes: Shape[] = [{ kind: 'circle', radius: 2 }, { kind: 'rect', width: 2, height: 3 }, { kind: 'text', text: 'hello' }];
const unknown: unknown = shapes[2]!.kind;
if (!isText(unknown))
  throw new TypeError();
console.log(shapes.map((shape) => `${shape.kind} ${measure(shape)}`).join(' '), `| port ${port} | never reached ${unreachable}`);
