//: what: streams: a pipeline with transforms, backpressure, async iteration and an error that is told
//: stdout: 10000 lines, 5000 kept, longest 12, error stopped here, chunks 3
//: vm: yes
const assert = require('assert');
const fs = require('fs');
const { once } = require('events');
const { Readable, Transform, Writable } = require('stream');
const { pipeline } = require('stream/promises');

function splitLines() {
  let rest = '';
  return new Transform({
    readableObjectMode: true,
    transform(chunk, _encoding, done) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop();
      lines.forEach((line) => this.push(line));
      done();
    },
    flush(done) { done(null, rest || null); },
  });
}

async function main() {
  const out = fs.createWriteStream('/tmp/lines');
  for (let n = 0; n < 10000; n++)
    if (!out.write(`line ${n}\n`))
      await once(out, 'drain');
  out.end('longest line\n');
  await once(out, 'finish');

  let lines = 0, kept = 0, longest = 0;
  await pipeline(fs.createReadStream('/tmp/lines', { highWaterMark: 1000 }), splitLines(), async (source) => {
    for await (const line of source) {
      lines++;
      kept += Number(/[02468]$/.test(line));
      longest = Math.max(longest, line.length);
    }
  });
  const stops = new Transform({ transform: (_chunk, _encoding, done) => done(new Error('stopped here')) });
  const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
  const error = await pipeline(Readable.from(['x']), stops, sink).catch((caught) => caught);
  const chunks = await Readable.from(['a', 'b', 'c']).map((text) => text.toUpperCase()).toArray();
  assert.deepStrictEqual(chunks, ['A', 'B', 'C']);
  console.log(`${lines - 1} lines, ${kept} kept, longest ${longest}, error ${error.message}, chunks ${chunks.length}`);
}

main();
