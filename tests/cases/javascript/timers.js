//: what: the order of promises, ticks, immediates and timers, and timers that are cleared or repeat
//: stdout: sync tick promise timeout immediate | repeated 3 | cleared | slept
//: vm: yes
const { setTimeout: sleep, setInterval: every } = require('timers/promises');

const order = [];

async function repeated() {
  let times = 0;
  for await (const value of every(2, 'x'))
    if (value === 'x' && ++times === 3)
      return times;
  return -1;
}

async function cleared() {
  let fired = false;
  const timer = setTimeout(() => { fired = true; }, 5);
  clearTimeout(timer);
  await sleep(15);
  return fired ? 'fired' : 'cleared';
}

setTimeout(() => order.push('timeout'), 0);
process.nextTick(() => order.push('tick'));
Promise.resolve().then(() => order.push('promise'));
order.push('sync');
// Busy for longer than the timer's delay, so that it is due in the first round of the event loop.
for (const start = Date.now(); Date.now() - start < 5;);
setImmediate(async () => {
  order.push('immediate');
  const before = performance.now();
  await sleep(20);
  const slept = performance.now() - before >= 19 ? 'slept' : 'woke early';
  console.log(`${order.join(' ')} | repeated ${await repeated()} | ${await cleared()} | ${slept}`);
});
