//: what: clocks, marks, measures, observers, histograms and the delay of the event loop
//: stdout: measured true, observed work, histogram 3 values mean 20, monotonic true, origin true, timerify 1, delay seen true
const assert = require("assert");
const { PerformanceObserver, createHistogram, monitorEventLoopDelay, performance } = require("perf_hooks");
const { setTimeout: sleep } = require("timers/promises");

async function main() {
  const observed = new Promise((resolve) => {
    new PerformanceObserver((list, observer) => {
      observer.disconnect();
      resolve(list.getEntries()[0]);
    }).observe({ entryTypes: ["measure"] });
  });
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  performance.mark("start");
  await sleep(30);
  performance.mark("end");
  const measure = performance.measure("work", "start", "end");
  const entry = await observed;
  assert.equal(entry.duration, measure.duration);

  const busy = process.hrtime.bigint();
  while (process.hrtime.bigint() - busy < 30_000_000n);
  await sleep(20);
  delay.disable();

  const histogram = createHistogram();
  for (const value of [10, 20, 30]) histogram.record(value);
  const timed = createHistogram();
  performance.timerify(() => 1, { histogram: timed })();
  const times = Array.from({ length: 1000 }, () => performance.now());
  console.log(`measured ${measure.duration >= 28 && measure.duration < 5000}, observed ${entry.name},`,
    `histogram ${histogram.count} values mean ${histogram.mean},`,
    `monotonic ${times.every((time, n) => n === 0 || time >= times[n - 1])},`,
    `origin ${Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 1000},`,
    `timerify ${timed.count}, delay seen ${delay.max >= 20_000_000}`);
}

main();
