//: what: memory shared between threads: a counter, a lock with wait and notify, and a ring
//: stdout: counter 8000, order 1 2, woken ok, ring 0 1 4 9 16
const { Worker, isMainThread, workerData } = require('worker_threads');
const { once } = require('events');

if (isMainThread) {
  main();
} else {
  const { shared, job } = workerData;
  const cells = new Int32Array(shared);
  if (job === 'count') {
    for (let n = 0; n < 2000; n++)
      Atomics.add(cells, 0, 1);
  } else if (job === 'wait') {
    Atomics.store(cells, 1, 1);
    Atomics.notify(cells, 1);
    const how = Atomics.wait(cells, 2, 0, 10000);
    Atomics.store(cells, 3, how === 'ok' || how === 'not-equal' ? 1 : 2);
  } else {
    for (let n = 0; n < 5; n++) {
      Atomics.store(cells, 8 + n, n * n);
      Atomics.add(cells, 4, 1);
      Atomics.notify(cells, 4);
    }
  }
}

async function main() {
  const shared = new SharedArrayBuffer(64);
  const cells = new Int32Array(shared);
  const start = (job) => new Worker(__filename, { workerData: { shared, job } });

  await Promise.all(Array.from({ length: 4 }, () => once(start('count'), 'exit')));

  const order = [];
  const waiting = start('wait'), ended = once(waiting, 'exit');
  while (Atomics.load(cells, 1) === 0)
    await Atomics.waitAsync?.(cells, 1, 0, 100).value ?? await new Promise(setImmediate);
  order.push(1);
  Atomics.store(cells, 2, 1);
  Atomics.notify(cells, 2);
  await ended;
  order.push(2);

  await once(start('ring'), 'exit');
  const ring = Array.from({ length: Atomics.load(cells, 4) }, (_, n) => Atomics.load(cells, 8 + n));
  console.log(`counter ${cells[0]}, order ${order.join(' ')}, woken ${cells[3] === 1 ? 'ok' : 'late'}, ring ${ring.join(' ')}`);
}
