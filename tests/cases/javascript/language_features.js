//: what: generators, proxies, symbols, private fields, destructuring, tagged templates, weak references and regular expressions
//: stdout: 0 1 1 2 3 5 | trapped get:name | [Money 5] | a:1 rest:2 | <b>x&lt;y</b> | 2024-05 | 9007199254740993 | #3
//: vm: yes
const assert = require('assert');

function* fibonacci() {
  for (let [a, b] = [0, 1]; ; [a, b] = [b, a + b])
    yield a;
}
function* take(n, source) {
  for (const value of source) {
    if (n-- <= 0)
      return;
    yield value;
  }
}

const log = [];
const proxy = new Proxy({ name: 'x' }, { get(target, key, receiver) { log.push(`get:${key}`); return Reflect.get(target, key, receiver); } });
assert.strictEqual(proxy.name, 'x');

class Counter {
  #count = 0;
  static made = 0;
  static { Counter.made = 2; }
  add() { this.#count += 1; return this; }
  get count() { return this.#count; }
  static is(thing) { return #count in thing; }
}
class Money {
  constructor(amount) { this.amount = amount; }
  [Symbol.toPrimitive](hint) { return hint === 'number' ? this.amount : `[Money ${this.amount}]`; }
}
assert(Counter.is(new Counter()) && !Counter.is({}) && Counter.made === 2 && +new Money(5) === 5);

const { a, ...rest } = { a: 1, b: 2, c: 3 };
const html = (parts, ...values) => String.raw({ raw: parts }, ...values.map((value) => value.replace('<', '&lt;')));
const { groups } = /(?<year>\d{4})-(?<month>\d\d)/.exec('report 2024-05.pdf');
const big = 2n ** 53n + 1n;
const weak = new WeakRef(log);
assert(weak.deref() === log && structuredClone(new Map([[1, new Set([2])]])).get(1).has(2));
assert.deepStrictEqual([3, 1, 2].toSorted?.() ?? [1, 2, 3], [1, 2, 3]);
assert.strictEqual(null?.x ?? 'none', 'none');
assert.strictEqual([[1, [2]], 3].flat(Infinity).at(-1), 3);
console.log(`${[...take(6, fibonacci())].join(' ')} | trapped ${log} | ${new Money(5)} | a:${a} rest:${Object.keys(rest).length} |`,
  html`<b>${'x<y'}</b>`, `| ${groups.year}-${groups.month} | ${big} | #${new Counter().add().add().add().count}`);
