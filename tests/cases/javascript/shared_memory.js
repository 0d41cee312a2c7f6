//: what: workers that count in shared memory with Atomics, take turns by a lock and wake each other
//: stdout: atomic 8000, locked 4000, woken 1, timed-out, not-equal, order 1,2,3,4
const assert = require("assert");
const { Worker } = require("worker_threads");
const { once } = require("events");

const code = `
const { parentPort, workerData: { memory, id } } = require("worker_threads");
const cells = new Int32Array(memory);
for (let n = 0; n < 2000; n++) Atomics.add(cells, 0, 1);
for (let n = 0; n < 1000; n++) {
  while (Atomics.compareExchange(cells, 1, 0, 1) !== 0) Atomics.wait(cells, 1, 1);
  cells[2] += 1;
  Atomics.store(cells, 1, 0);
  Atomics.notify(cells, 1, 1);
}
for (let turn; (turn = Atomics.load(cells, 3)) !== id; ) Atomics.wait(cells, 3, turn);
cells[4 + id] = Atomics.add(cells, 9, 1);
Atomics.store(cells, 3, id + 1);
Atomics.notify(cells, 3);
`;

async function main() {
  const memory = new SharedArrayBuffer(64);
  const cells = new Int32Array(memory);
  cells[9] = 1;
  const workers = [0, 1, 2, 3].map((id) => new Worker(code, { eval: true, workerData: { memory, id } }));
  await Promise.all(workers.map((worker) => once(worker, "exit")));

  const late = Atomics.wait(cells, 10, 0, 10);
  const unequal = Atomics.wait(cells, 10, 1);
  const sleeper = new Worker(`
    const { parentPort, workerData } = require("worker_threads");
    const cells = new Int32Array(workerData);
    Atomics.store(cells, 11, 1);
    parentPort.postMessage(Atomics.wait(cells, 12, 0, 10000));
  `, { eval: true, workerData: memory });
  const message = once(sleeper, "message");
  let woken = 0;
  while (woken === 0) {
    await new Promise((resolve) => setTimeout(resolve, 2));
    woken = Atomics.notify(cells, 12);
  }
  const [how] = await message;
  assert.equal(how, "ok");
  console.log(`atomic ${cells[0]}, locked ${cells[2]}, woken ${woken}, ${late}, ${unequal}, order ${cells.slice(4, 8)}`);
}

main();
