//: what: generic functions, constraints, mapped and conditional types, and inference
//: stdout: 3 one,two {"a":"1","b":"true"} first 4 pairs a=1
//: vm: yes
type Text<T> = { [K in keyof T]: string };
type Element<T> = T extends readonly (infer U)[] ? U : never;

function longest<T extends { length: number }>(...items: [T, ...T[]]): T {
  return items.reduce((best, item) => item.length > best.length ? item : best);
}

function texts<T extends object>(from: T): Text<T> {
  return Object.fromEntries(Object.entries(from).map(([key, value]) => [key, String(value)])) as Text<T>;
}

class Stack<T> {
  private readonly items: T[] = [];
  push(...items: T[]): this {
    this.items.push(...items);
    return this;
  }
  pop(): T | undefined { return this.items.pop(); }
  get size(): number { return this.items.length; }
}

const numbers = [4, 5] as const;
const first: Element<typeof numbers> = numbers[0];
const stack = new Stack<string>().push('one', 'two', 'three', 'four');
stack.pop();
const pairs: ReadonlyMap<string, number> = new Map([['a', 1]]);
console.log(stack.size, longest(['x'], ['one', 'two']).join(), JSON.stringify(texts({ a: 1, b: true })),
  `first ${first} pairs ${[...pairs].map(([k, v]) => `${k}=${v}`)}`);
