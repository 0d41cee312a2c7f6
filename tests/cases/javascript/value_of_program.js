//: what: a program whose last line is a promise, which is awaited and becomes its value
//: stdout: working
//: result: {"total": 6, "names": ["a", "b"], "nested": {"deep": [true, null]}}
//: vm: yes
const { setTimeout: sleep } = require('timers/promises');

async function load(name, amount) {
  await sleep(5);
  return { name, amount };
}

async function summarise() {
  const items = await Promise.all([load('a', 2), load('b', 4)]);
  return {
    total: items.reduce((sum, { amount }) => sum + amount, 0),
    names: items.map(({ name }) => name),
    nested: { deep: [true, null] },
  };
}

console.log('working');
summarise();
