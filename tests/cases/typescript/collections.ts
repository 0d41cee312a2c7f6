//: what: generic containers that are iterable, with private fields, constraints, defaults and optional chaining
//: stdout: stack c,b,a peek c; queue 1 first 2; grouped fruit:2 root:1; lru b,c; none undefined
import { deepEqual, equal } from "node:assert/strict";

abstract class Container<T> implements Iterable<T> {
  protected readonly items: T[] = [];
  abstract take(): T | undefined;
  add(...items: T[]): this {
    this.items.push(...items);
    return this;
  }
  get size(): number {
    return this.items.length;
  }
  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (const item of this.items) yield item;
  }
}

class Stack<T> extends Container<T> {
  override take = (): T | undefined => this.items.pop();
  override *[Symbol.iterator](): Generator<T, void, undefined> {
    for (let n = this.items.length; n-- > 0; ) yield this.items[n]!;
  }
}
class Queue<T = number> extends Container<T> {
  override take = (): T | undefined => this.items.shift();
}

class Lru<K, V> {
  readonly #map = new Map<K, V>();
  constructor(private readonly limit: number) {}
  put(key: K, value: V): void {
    this.#map.delete(key);
    this.#map.set(key, value);
    if (this.#map.size > this.limit) this.#map.delete(this.#map.keys().next().value!);
  }
  get(key: K): V | undefined {
    const value = this.#map.get(key);
    if (value !== undefined) this.put(key, value);
    return value;
  }
  keys = (): K[] => [...this.#map.keys()];
}

function groupBy<T, K extends PropertyKey>(items: Iterable<T>, key: (item: T) => K): Record<K, T[]> {
  const groups = {} as Record<K, T[]>;
  for (const item of items) (groups[key(item)] ??= []).push(item);
  return groups;
}

const stack = new Stack<string>().add("a", "b", "c");
const queue: Container<number> = new Queue().add(1, 2);
const lru = new Lru<string, number>(2);
lru.put("a", 1);
lru.put("b", 2);
equal(lru.get("a"), 1);
lru.put("b", 3);
lru.put("c", 4);
const foods: { name: string; kind?: "fruit" | "root" }[] = [{ name: "pear", kind: "fruit" }, { name: "fig", kind: "fruit" }, { name: "beet", kind: "root" }];
const groups = groupBy(foods, (food) => food.kind ?? "other");
deepEqual(groups.root?.map(({ name }) => name), ["beet"]);
const shown = [...stack].join();
console.log(`stack ${shown} peek ${stack.take()}; queue ${queue.take()} first ${[...queue][0]};`,
  `grouped ${Object.entries(groups).map(([kind, all]) => `${kind}:${all.length}`).join(" ")}; lru ${lru.keys()}; none ${groups.other?.[0]?.name}`);
