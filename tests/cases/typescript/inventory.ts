//: what: an inventory: interfaces, readonly data, utility types, index signatures and sorting
//: args: --min 2
//: stdout: 3 kinds worth 51.50; low: bolt; dearest saw; renamed Hammer; min 2
//: result: {"bolt": 1, "hammer": 3, "saw": 2}
interface Item {
  readonly id: string;
  price: number;
  count: number;
  note?: string;
}
type Draft = Partial<Omit<Item, 'id'>> & Pick<Item, 'id'>;
type Stock = Record<string, number>;

const defaults: Omit<Item, 'id'> = { price: 1, count: 0 };
const complete = (draft: Draft): Item => ({ ...defaults, ...draft });

const items: readonly Item[] = [
  complete({ id: 'saw', price: 15, count: 2, note: 'sharp' }),
  complete({ id: 'bolt', price: 0.5, count: 1 }),
  complete({ id: 'hammer', price: 7, count: 3 }),
];
const min = Number(process.argv[process.argv.indexOf('--min') + 1]);
const worth = items.reduce((sum, { price, count }) => sum + price * count, 0);
const low = items.filter(({ count }) => count < min).map(({ id }) => id);
const dearest = [...items].sort((a, b) => b.price - a.price)[0]!;
const stock = items.reduce<Stock>((all, { id, count }) => ({ ...all, [id]: count }), {});
const renamed = items.at(-1)!.id.replace(/^./, (letter) => letter.toUpperCase());
const noted = items.map((item) => item.note?.length ?? 0);
if (noted.join() !== '5,0,0')
  throw new Error(noted.join());
console.log(`${items.length} kinds worth ${worth.toFixed(2)}; low: ${low}; dearest ${dearest.id}; renamed ${renamed}; min ${min}`);
stock;
