//: what: a CommonJS program that imports built-in, written and generated modules while it runs
//: stdout: join a/b, plug-ins area 6 size 8, commonjs default 9, once 1, failing SyntaxError broken Error
const assert = require("assert");
const fs = require("fs");

async function main() {
  const { default: path, join } = await import("node:path");
  assert.equal(path.join, join);
  fs.mkdirSync("plugins");
  fs.writeFileSync("plugins/area.mjs", "export const name = 'area';\nexport default (a, b) => a * b;\n");
  fs.writeFileSync("plugins/size.mjs", "import area, { name as other } from './area.mjs';\nexport const name = 'size';\n"
    + "export default (a, b) => area(a, b) + other.length - 2;\n");
  const found = [];
  for (const file of fs.readdirSync("plugins").sort()) {
    const plugin = await import(`./plugins/${file}`);
    found.push(`${plugin.name} ${plugin.default(2, 3)}`);
  }

  fs.writeFileSync("nine.cjs", "globalThis.nines = (globalThis.nines ?? 0) + 1;\nmodule.exports = { value: 9 };\n");
  const [nine, same] = await Promise.all([import("./nine.cjs"), import("./nine.cjs")]);
  assert.equal(nine, same);
  assert.equal(require("./nine.cjs"), nine.default);

  fs.writeFileSync("bad.mjs", "let let = 1;\n");
  fs.writeFileSync("throws.mjs", "throw new Error('broken');\n");
  const bad = await import("./bad.mjs").catch((error) => error);
  const throws = await import("./throws.mjs").catch((error) => error);
  console.log(`join ${join("a", "b")}, plug-ins ${found.join(" ")}, commonjs default ${nine.default.value}, once ${globalThis.nines},`,
    `failing ${bad.name} ${throws.message} ${throws.name}`);
}

main();
