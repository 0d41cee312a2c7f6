//: what: standard input line by line with readline, and the arguments of the command line
//: args: --unit km "two words"
//: stdin: 10 Oslo\n20 Bergen\nnot a line\n12 Tromsø
//: stdout: 3 places, 42 km, longest Bergen, 1 skipped, rest two words
//: vm: yes
const assert = require('assert');
const readline = require('readline');
const { parseArgs } = require('util');

async function main() {
  const { values, positionals } = parseArgs({ options: { unit: { type: 'string' } }, allowPositionals: true });
  assert.strictEqual(process.argv.length, 5);
  let total = 0, skipped = 0;
  const places = [];
  for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const match = /^(\d+) (\p{Letter}+)$/u.exec(line);
    if (match === null) {
      skipped++;
      continue;
    }
    total += Number(match[1]);
    places.push(match[2]);
  }
  const longest = places.reduce((best, place) => place.length > best.length ? place : best);
  assert.strictEqual(process.stdin.isTTY, undefined);
  console.log(`${places.length} places, ${total} ${values.unit}, longest ${longest}, ${skipped} skipped, rest ${positionals}`);
}

main();
