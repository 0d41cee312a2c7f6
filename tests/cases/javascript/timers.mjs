//: what: timers by callback and by promise, their order, intervals, cancelling, unref and the order of turns
//: stdout: a b c | tick micro immediate | 3 beats | cleared | aborted AbortError | value 7
//: vm: yes
import assert from "node:assert/strict";
import { setImmediate as turn, setInterval as beats, setTimeout as sleep } from "node:timers/promises";

const order = [];
await Promise.all([sleep(90).then(() => order.push("c")), sleep(10).then(() => order.push("a")), sleep(50).then(() => order.push("b"))]);

const turns = [];
setTimeout(() => {
  turns.length = 0;
  setImmediate(() => turns.push("immediate"));
  Promise.resolve().then(() => turns.push("micro"));
  process.nextTick(() => turns.push("tick"));
}, 1);
await sleep(30);
await turn();

let count = 0;
for await (const value of beats(2, "beat")) {
  assert.equal(value, "beat");
  if (++count === 3) break;
}

let fired = false;
clearTimeout(setTimeout(() => (fired = true), 5));
setTimeout(() => assert.fail("the program waited for a timer that does not count"), 60_000).unref();
const cancel = new AbortController();
setTimeout(() => cancel.abort(), 5);
const aborted = await sleep(60_000, null, { signal: cancel.signal }).catch((error) => error);
const start = performance.now();
const value = await sleep(20, 7);
assert.ok(performance.now() - start >= 18);
console.log(order.join(" "), "|", turns.join(" "), `| ${count} beats |`, fired ? "fired" : "cleared", "| aborted", aborted.name, "| value", value);
