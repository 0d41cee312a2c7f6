//: what: scripts in contexts of their own with the vm module, and state that follows asynchronous calls
//: stdout: 42, isolated undefined, late ERR_SCRIPT_EXECUTION_TIMEOUT, line 2, requests a1 b2
const { AsyncLocalStorage } = require('async_hooks');
const { setTimeout: sleep } = require('timers/promises');
const vm = require('vm');

const context = vm.createContext({ base: 40 });
const answer = new vm.Script('var answer = base + 2; answer').runInContext(context);
const isolated = typeof globalThis.answer;

let late = 'ended';
try {
  vm.runInNewContext('for (;;);', {}, { timeout: 20 });
} catch (error) {
  late = error.code;
}
let line;
try {
  vm.runInContext('let a = 1;\nlet a = 2;', context, { filename: 'inner.js' });
} catch (error) {
  [, line] = /inner\.js:(\d+)/.exec(error.stack);
}

const storage = new AsyncLocalStorage();
async function handle(name, ms) {
  await sleep(ms);
  const request = storage.getStore();
  request.count += ms;
  await null;
  return `${name}${storage.getStore().count}`;
}
Promise.all([storage.run({ count: 0 }, handle, 'a', 1), storage.run({ count: 0 }, handle, 'b', 2)]).then((requests) => {
  console.log(`${answer}, isolated ${isolated}, late ${late}, line ${line}, requests ${requests.join(' ')}`);
});
