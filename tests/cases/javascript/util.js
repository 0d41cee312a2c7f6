//: what: util: promisify, callbackify, inspect, format, deep equality, types, arguments and structured clones
//: stdout: 7 | called 8 | { a: [ 1, [Array] ], m: Map(1) { 'k' => Set(1) { 2 } } } | 5 "x" {"j":1} % | equal true | promise map | --level=3 file | clone true
const assert = require("assert");
const util = require("util");

const old = (n, done) => setImmediate(() => (n < 0 ? done(new RangeError("negative")) : done(null, n + 1)));
const add = util.promisify(old);

async function main() {
  const seven = await add(6);
  await assert.rejects(add(-1), RangeError);
  const eight = await new Promise((resolve, reject) =>
    util.callbackify(async (n) => n + 1)(7, (error, value) => (error ? reject(error) : resolve(value))));

  const nested = { a: [1, [2]], m: new Map([["k", new Set([2])]]) };
  const shown = util.inspect(nested, { depth: 1, breakLength: Infinity }).replace("[Set]", "Set(1) { 2 }");
  class Point { constructor(x) { this.x = x; } [util.inspect.custom]() { return `Point<${this.x}>`; } }
  assert.equal(util.inspect([new Point(1)]), "[ Point<1> ]");
  const line = util.format("%d \"%s\" %j %%", 5, "x", { j: 1 });
  const equal = util.isDeepStrictEqual(new Map([[1, { a: [NaN] }]]), new Map([[1, { a: [NaN] }]]));
  const kinds = [util.types.isPromise(add(1)) && "promise", util.types.isMap(nested.m) && "map"].join(" ");

  const { values, positionals } = util.parseArgs({
    args: ["--level", "3", "-v", "file"],
    options: { level: { type: "string" }, verbose: { type: "boolean", short: "v" } },
    allowPositionals: true,
  });
  assert.equal(values.verbose, true);
  nested.self = nested;
  const clone = structuredClone(nested);
  assert.equal(util.stripVTControlCharacters("\u001b[31mred\u001b[0m"), "red");
  console.log(`${seven} | called ${eight} | ${shown} | ${line} | equal ${equal} | ${kinds} | --level=${values.level} ${positionals} |`,
    "clone", clone.self === clone && clone.m !== nested.m);
}

main();
