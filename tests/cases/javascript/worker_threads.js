//: what: worker threads with messages, transferred memory, a message channel, an error and an early end
//: stdout: sums 1275 3775, transferred 0 left 8, channel pong, error broken, terminated 1
const { once } = require('events');
const { Worker, MessageChannel, isMainThread, parentPort, workerData } = require('worker_threads');

if (isMainThread) {
  main();
} else if (workerData.kind === 'sum') {
  let sum = 0;
  for (let n = workerData.from; n <= workerData.to; n++)
    sum += n;
  parentPort.postMessage(sum);
} else if (workerData.kind === 'channel') {
  parentPort.once('message', ({ port }) => {
    port.on('message', (text) => { port.postMessage(text.replace('i', 'o')); port.close(); });
  });
} else if (workerData.kind === 'broken') {
  throw new Error('broken');
} else {
  for (;;);
}

async function sum(from, to) {
  const worker = new Worker(__filename, { workerData: { kind: 'sum', from, to } });
  const [result] = await once(worker, 'message');
  return result;
}

async function main() {
  const sums = await Promise.all([sum(1, 50), sum(51, 100)]);

  const bytes = new Uint8Array(8);
  const { port1, port2 } = new MessageChannel();
  port1.postMessage(bytes, [bytes.buffer]);
  const [moved] = await once(port2, 'message');
  port1.close();

  const channel = new Worker(__filename, { workerData: { kind: 'channel' } });
  const { port1: ours, port2: theirs } = new MessageChannel();
  channel.postMessage({ port: theirs }, [theirs]);
  ours.postMessage('ping');
  const [answer] = await once(ours, 'message');

  const [error] = await once(new Worker(__filename, { workerData: { kind: 'broken' } }), 'error');
  const endless = new Worker(__filename, { workerData: { kind: 'endless' } });
  await once(endless, 'online');
  const status = await endless.terminate();
  console.log(`sums ${sums.join(' ')}, transferred ${bytes.length} left ${moved.length}, channel ${answer},`,
    `error ${error.message}, terminated ${status}`);
}
