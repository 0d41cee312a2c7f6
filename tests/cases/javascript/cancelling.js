//: what: AbortController in timers, events, streams, fetch and child processes
//: stdout: sleep AbortError, timeout TimeoutError, listener 1, stream AbortError, fetch AbortError, child AbortError
const { execFile } = require('child_process');
const http = require('http');
const { once } = require('events');
const { PassThrough } = require('stream');
const { finished } = require('stream/promises');
const { setTimeout: sleep } = require('timers/promises');
const { promisify } = require('util');

const nameOf = (promise) => promise.then(() => 'done', (error) => error.name);

async function cancelled(start) {
  const controller = new AbortController();
  const outcome = nameOf(start(controller.signal));
  setTimeout(() => controller.abort(), 10);
  return outcome;
}

async function main() {
  const slept = await cancelled((signal) => sleep(10000, null, { signal }));
  const timeout = await new Promise((tell) => {
    const signal = AbortSignal.timeout(10);
    const alive = setTimeout(() => {}, 5000);
    signal.addEventListener('abort', () => { clearTimeout(alive); tell(signal.reason.name); }, { once: true });
  });

  const target = new EventTarget(), controller = new AbortController();
  let heard = 0;
  target.addEventListener('ping', () => heard++, { signal: controller.signal });
  target.dispatchEvent(new Event('ping'));
  controller.abort();
  target.dispatchEvent(new Event('ping'));

  const stream = await cancelled((signal) => finished(new PassThrough({ signal })));
  const server = http.createServer(() => {}).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const asked = await cancelled((signal) => fetch(`http://127.0.0.1:${server.address().port}/`, { signal }));
  server.closeAllConnections();
  server.close();
  const child = await cancelled((signal) => promisify(execFile)('sleep', ['10'], { signal }));
  console.log(`sleep ${slept}, timeout ${timeout}, listener ${heard}, stream ${stream}, fetch ${asked}, child ${child}`);
}

main();
