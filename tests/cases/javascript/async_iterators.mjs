//: what: async generators that are chained, merged, limited, cleaned up and read from files and streams
//: stdout: squares 4,16,36 | merged a1 b1 a2 b2 | closed | caught broken | words 5 | settled fulfilled,rejected | any 2
//: vm: yes
import assert from "node:assert/strict";
import { createReadStream, writeFileSync } from "node:fs";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

const log = [];
async function* numbers() {
  try {
    for (let n = 1; ; n++) yield n;
  } finally {
    log.push("closed");
  }
}
async function* map(source, change) { for await (const item of source) yield change(item); }
async function* filter(source, test) { for await (const item of source) if (test(item)) yield item; }
async function take(source, count) {
  const items = [];
  for await (const item of source) if (items.push(item) === count) break;
  return items;
}
const squares = await take(map(filter(numbers(), (n) => n % 2 === 0), (n) => n * n), 3);

async function* zip(...sources) {
  for (;;) {
    const steps = await Promise.all(sources.map((source) => source.next()));
    if (steps.some((step) => step.done)) return;
    yield* steps.map((step) => step.value);
  }
}
const letters = (letter) => map(Readable.from([1, 2]), async (n) => letter + n);
const merged = await take(zip(letters("a"), letters("b")), 99);

async function* broken() { yield 1; throw new Error("broken"); }
const caught = await take(broken(), 5).catch((error) => error.message);
writeFileSync("/tmp/words", "five words in\none file\n");
let words = 0;
for await (const chunk of createReadStream("/tmp/words", { encoding: "utf8", highWaterMark: 64 })) words += chunk.match(/\w+/g).length;

const settled = await Promise.allSettled([sleep(5), Promise.reject(new Error("no"))]);
const any = await Promise.any([Promise.reject(new Error("no")), sleep(5, 2), sleep(500, 3, { ref: false })]);
assert.equal(await Promise.race([sleep(5, "fast"), sleep(500, "slow", { ref: false })]), "fast");
console.log(`squares ${squares} | merged ${merged.join(" ")} | ${log} | caught ${caught} | words ${words} |`,
  `settled ${settled.map((one) => one.status)} | any ${any}`);
