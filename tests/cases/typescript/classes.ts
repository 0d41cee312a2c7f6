//: what: abstract classes, interfaces, overloads, accessors, private names and static blocks
//: stdout: Rex says woof, Tom says meow | 2 made | 10 ten | secret hidden | total 15
interface Speaker {
  readonly name: string;
  speak(): string;
}

abstract class Animal implements Speaker {
  static made = 0;
  #secret = 'hidden';
  protected constructor(readonly name: string) {
    Animal.made++;
  }
  protected abstract sound(): string;
  speak(): string { return `${this.name} says ${this.sound()}`; }
  get secret(): string { return this.#secret; }
}

class Dog extends Animal {
  constructor(name: string) { super(name); }
  protected override sound(): string { return 'woof'; }
}

class Cat extends Animal {
  constructor(name: string) { super(name); }
  protected override sound(): string { return 'meow'; }
}

function convert(value: string): number;
function convert(value: number): string;
function convert(value: string | number): string | number {
  return typeof value === 'string' ? parseInt(value, 10) : ['zero', 'ten'][value / 10]!;
}

function total(this: { start: number }, ...amounts: number[]): number {
  return amounts.reduce((sum, amount) => sum + amount, this.start);
}

const animals: Speaker[] = [new Dog('Rex'), new Cat('Tom')];
console.log(animals.map((animal) => animal.speak()).join(', '), `| ${Animal.made} made | ${convert('10')} ${convert(10)} |`,
  `secret ${(animals[0] as Dog).secret} | total ${total.call({ start: 5 }, 4, 6)}`);
