//: act: take memory outside the heap that the engine of the language bounds
//: options: --memory 128MiB
//: status: memory_exceeded
//: host-check: memory_at_most 128
const blocks = [];
for (let n = 0; n < 64; n++)
  blocks.push(Buffer.alloc(16 << 20, 1));
console.log('ESCAPED:', blocks.length);
