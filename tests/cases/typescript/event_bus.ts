//: what: an event bus whose names and payloads are typed, with template literal types and mapped types
//: stdout: opened:door, price 12.5 EUR, closed 2 times, handlers onOpened,onClosed,onPriced
import assert from "node:assert/strict";

interface Events {
  opened: { what: string };
  closed: void;
  priced: { amount: number; currency: "EUR" | "USD" };
}
type Handler<P> = P extends void ? () => void : (payload: P) => void;
type Handlers<E> = { [K in keyof E & string as `on${Capitalize<K>}`]?: Handler<E[K]> };

class Bus<E extends object> {
  readonly #handlers = new Map<keyof E, Set<(payload: any) => void>>();

  on<K extends keyof E>(name: K, handler: Handler<E[K]>): () => void {
    const set = this.#handlers.get(name) ?? new Set<(payload: any) => void>();
    this.#handlers.set(name, set.add(handler as (payload: any) => void));
    return () => void set.delete(handler as (payload: any) => void);
  }

  emit<K extends keyof E>(name: K, ...payload: E[K] extends void ? [] : [E[K]]): number {
    const handlers = [...(this.#handlers.get(name) ?? [])];
    for (const handler of handlers) handler(payload[0]);
    return handlers.length;
  }
}

const bus = new Bus<Events>();
const told: string[] = [];
let closed = 0;
const all = {
  onOpened: ({ what }) => void told.push(`opened:${what}`),
  onClosed: () => void closed++,
  onPriced: ({ amount, currency }) => void told.push(`price ${amount.toFixed(1)} ${currency}`),
} satisfies Handlers<Events>;
const off = bus.on("opened", all.onOpened);
bus.on("closed", all.onClosed);
bus.on("priced", all.onPriced);
assert.equal(bus.emit("opened", { what: "door" }), 1);
off();
assert.equal(bus.emit("opened", { what: "window" }), 0);
bus.emit("priced", { amount: 12.5, currency: "EUR" });
bus.emit("closed");
bus.emit("closed");
console.log(`${told.join(", ")}, closed ${closed} times, handlers ${Object.keys(all)}`);
