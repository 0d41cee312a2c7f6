//: what: classes with private members, accessors, static blocks, symbols, proxies, reflection and weak references
//: stdout: balance 70, made 2, iter 1,2,3, area 12 > 6, proxy logged get:x set:y, tagged [object Account], brand false
//: vm: yes
const assert = require("assert");

class Account {
  static #made;
  static { Account.#made = 0; }
  #balance = 0;
  constructor(start) { this.#balance = start; Account.#made++; }
  static get made() { return Account.#made; }
  static is(thing) { return #balance in thing; }
  get balance() { return this.#balance; }
  withdraw(sum) {
    if (sum > this.#balance) throw new RangeError("not enough", { cause: { sum } });
    this.#balance -= sum;
    return this;
  }
  get [Symbol.toStringTag]() { return "Account"; }
}
class Range {
  constructor(from, to) { Object.assign(this, { from, to }); }
  *[Symbol.iterator]() { for (let n = this.from; n <= this.to; n++) yield n; }
}
class Shape {
  area() { throw new Error(`${new.target?.name ?? this.constructor.name} has no area`); }
  [Symbol.toPrimitive](hint) { return hint === "string" ? this.constructor.name : this.area(); }
}
const Named = (Base) => class extends Base { named = true; };
class Box extends Named(Shape) { constructor(w, h) { super(); this.w = w; this.h = h; } area() { return this.w * this.h; } }

const account = new Account(100).withdraw(30);
new Account(1);
assert.throws(() => account.withdraw(1000), (error) => error.cause.sum === 1000);
assert.throws(() => { "use strict"; account.balance = 5; }, TypeError);
const [big, small] = [new Box(3, 4), new Box(2, 3)];
assert.ok(big > small && big.named && big instanceof Shape);
assert.throws(() => new Shape().area(), /Shape has no area/);

const log = [];
const proxy = new Proxy({ x: 1 }, {
  get: (target, key, receiver) => { log.push(`get:${key}`); return Reflect.get(target, key, receiver); },
  set: (target, key, value) => { log.push(`set:${key}`); return Reflect.set(target, key, value); },
});
proxy.y = proxy.x + 1;
const held = new WeakRef(account);
assert.equal(held.deref(), account);
console.log(`balance ${account.balance}, made ${Account.made}, iter ${[...new Range(1, 3)]}, area ${+big} > ${+small},`,
  `proxy logged ${log.join(" ")}, tagged ${account}, brand ${Account.is({})}`);
