//: what: standard input by lines, as an async iterator, with questions answered and the last line unfinished
//: stdin: Ada\nheight 3\nwidth 4\n\nskip\nwidth 5\nlast
//: stdout: hello Ada; 6 more lines; height 3, width 5; empty 1; last "last"
import assert from "node:assert/strict";
import readline from "node:readline";

const lines = readline.createInterface({ input: process.stdin, crlfDelay: Infinity });
const seen = [];
const sizes = new Map();
let name;
for await (const line of lines) {
  if (name === undefined) {
    name = line;
    continue;
  }
  seen.push(line);
  const match = /^(?<key>\w+) (?<value>\d+)$/.exec(line);
  if (match) sizes.set(match.groups.key, Number(match.groups.value));
}
assert.equal(process.stdin.isTTY, undefined);
assert.ok(process.stdin.readableEnded);
const text = [...sizes].map(([key, value]) => `${key} ${value}`).join(", ");
console.log(`hello ${name}; ${seen.length} more lines; ${text}; empty ${seen.filter((line) => line === "").length};`,
  `last "${seen.at(-1)}"`);
