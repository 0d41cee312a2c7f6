//: what: a WebAssembly module made of bytes: exported functions, an import, memory and a trap
//: stdout: add 42, wraps -2147483648, told 7, memory 65536 then 131072, trap RuntimeError, invalid CompileError
const assert = require("assert");

const section = (id, ...bytes) => [id, bytes.length, ...bytes];
const name = (text) => [text.length, ...Buffer.from(text)];
const i32 = 0x7f;
const bytes = Uint8Array.from([
  0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
  ...section(1, 3, 0x60, 2, i32, i32, 1, i32, 0x60, 1, i32, 0, 0x60, 2, i32, i32, 1, i32),
  ...section(2, 1, ...name("host"), ...name("tell"), 0, 1),
  ...section(3, 3, 0, 1, 2),
  ...section(5, 1, 0, 1),
  ...section(7, 4, ...name("add"), 0, 1, ...name("speak"), 0, 2, ...name("divide"), 0, 3, ...name("memory"), 2, 0),
  ...section(10, 3,
    7, 0, 0x20, 0, 0x20, 1, 0x6a, 0x0b,
    6, 0, 0x20, 0, 0x10, 0, 0x0b,
    7, 0, 0x20, 0, 0x20, 1, 0x6d, 0x0b),
]);

async function main() {
  assert.ok(WebAssembly.validate(bytes));
  let told = 0;
  const { instance } = await WebAssembly.instantiate(bytes, { host: { tell: (n) => (told = n) } });
  const { add, speak, divide, memory } = instance.exports;
  speak(7);
  assert.equal(divide(84, 2), 42);
  const before = memory.buffer.byteLength;
  memory.grow(1);
  new Uint8Array(memory.buffer).fill(9, 70000, 70010);
  const kind = (call) => { try { call(); return "none"; } catch (error) { return error.constructor.name; } };
  console.log(`add ${add(40, 2)}, wraps ${add(2147483647, 1)}, told ${told}, memory ${before} then ${memory.buffer.byteLength},`,
    `trap ${kind(() => divide(1, 0))}, invalid ${kind(() => new WebAssembly.Module(bytes.slice(0, 30)))}`);
}

main();
