//: what: WebAssembly made by hand: a function, memory, an import, a loop and a trap
//: stdout: add 42, factorial 3628800, memory 65536 grown 131072, called back 7, trap RuntimeError
const assert = require('assert');

const bytes = (...parts) => Uint8Array.from(parts.flat(Infinity));
const section = (id, ...body) => { const flat = body.flat(Infinity); return [id, flat.length, flat]; };
const code = (...body) => { const flat = body.flat(Infinity); return [flat.length, flat]; };
const name = (text) => [text.length, ...Buffer.from(text)];

// Types: 0 (i32 i32) -> i32, 1 (i32) -> (), 2 (i32) -> i32; opcodes as in the specification's appendix.
const module_ = new WebAssembly.Module(bytes(
  [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  section(1, 3, [0x60, 2, 0x7f, 0x7f, 1, 0x7f], [0x60, 1, 0x7f, 0], [0x60, 1, 0x7f, 1, 0x7f]),
  section(2, 1, name('env'), name('seen'), 0, 1),
  section(3, 4, 0, 2, 1, 2),
  section(5, 1, 0, 1),
  section(7, 5, name('add'), 0, 1, name('fact'), 0, 2, name('tell'), 0, 3, name('divide'), 0, 4, name('memory'), 2, 0),
  section(10, 4,
    code(0, 0x20, 0, 0x20, 1, 0x6a, 0x0b),
    code(0, 0x20, 0, 0x45, 0x04, 0x7f, 0x41, 1, 0x05, 0x20, 0, 0x20, 0, 0x41, 1, 0x6b, 0x10, 2, 0x6c, 0x0b, 0x0b),
    code(0, 0x20, 0, 0x10, 0, 0x0b),
    code(0, 0x41, 1, 0x20, 0, 0x6d, 0x0b)),
));

const seen = [];
const { exports: wasm } = new WebAssembly.Instance(module_, { env: { seen: (value) => seen.push(value) } });
wasm.tell(7);
const before = wasm.memory.buffer.byteLength;
wasm.memory.grow(1);
let trap = 'none';
try {
  wasm.divide(0);
} catch (error) {
  trap = error.constructor.name;
}
assert.throws(() => new WebAssembly.Module(bytes(1, 2, 3)), WebAssembly.CompileError);
console.log(`add ${wasm.add(40, 2)}, factorial ${wasm.fact(10)}, memory ${before} grown ${wasm.memory.buffer.byteLength},`,
  `called back ${seen}, trap ${trap}`);
