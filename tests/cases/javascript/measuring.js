//: what: performance marks, measures, observers, histograms and the loop's delay
//: stdout: measured true, observed 1, histogram 100, uptime true, memory true, cpu true
const { performance, PerformanceObserver, createHistogram, monitorEventLoopDelay } = require('perf_hooks');
const { setTimeout: sleep } = require('timers/promises');

async function main() {
  const observed = [];
  const observer = new PerformanceObserver((list) => observed.push(...list.getEntries()));
  observer.observe({ entryTypes: ['measure'] });

  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  performance.mark('start');
  await sleep(20);
  performance.mark('end');
  const { duration } = performance.measure('work', 'start', 'end');
  await sleep(5);
  delay.disable();
  observer.disconnect();

  const histogram = createHistogram();
  for (let value = 1; value <= 100; value++)
    histogram.record(value);
  const before = process.cpuUsage();
  let x = 0;
  for (let n = 0; n < 3e6; n++)
    x += Math.sqrt(n);
  const cpu = process.cpuUsage(before).user > 0 && x > 0;
  const { rss, heapUsed } = process.memoryUsage();
  console.log(`measured ${duration >= 19}, observed ${observed.length}, histogram ${histogram.max},`,
    `uptime ${process.uptime() > 0 && process.hrtime.bigint() > 0n && delay.max >= 0}, memory ${rss > heapUsed}, cpu ${cpu}`);
}

main();
