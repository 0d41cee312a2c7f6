//: what: event emitters: order, once, prepending, errors, iteration, async capture, and event targets
//: stdout: first,second,once,second | left 1 | unhandled ERR_UNHANDLED_ERROR | iterated 1,2,3 | captured late | target 2 stopped
const assert = require("assert");
const { EventEmitter, getEventListeners, on, once } = require("events");

class Store extends EventEmitter {
  #items = [];
  add(item) {
    this.#items.push(item);
    return this.emit("add", item, this.#items.length);
  }
}

async function main() {
  const store = new Store();
  const seen = [];
  const second = () => seen.push("second");
  store.on("add", second);
  store.once("add", () => seen.push("once"));
  const first = () => { seen.push("first"); store.off("add", first); };
  store.prependListener("add", first);
  assert.equal(store.add("x"), true);
  store.add("y");
  assert.equal(store.emit("nobody"), false);

  let unhandled;
  try { store.emit("error", "not an Error"); } catch (error) { unhandled = error.code; }
  setTimeout(() => [1, 2, 3].forEach((n) => store.emit("number", n)), 5);
  const numbers = [];
  for await (const [n] of on(store, "number")) {
    numbers.push(n);
    if (n === 3) break;
  }
  const capturing = new EventEmitter({ captureRejections: true });
  capturing.on("work", async () => { throw new Error("late"); });
  const failure = once(capturing, "error");
  capturing.emit("work");
  const [error] = await failure;

  const target = new EventTarget();
  let count = 0;
  target.addEventListener("tick", { handleEvent(event) { count++; if (count === 2) event.stopImmediatePropagation(); } });
  target.addEventListener("tick", () => assert.equal(count, 1));
  assert.equal(getEventListeners(target, "tick").length, 2);
  target.dispatchEvent(new Event("tick"));
  target.dispatchEvent(new Event("tick"));
  console.log(`${seen} | left ${store.listenerCount("add")} | unhandled ${unhandled} | iterated ${numbers} | captured ${error.message} | target ${count} stopped`);
}

main();
