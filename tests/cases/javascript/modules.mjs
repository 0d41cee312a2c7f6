//: what: an ES module: top-level await, imports of three kinds, import.meta and live bindings
//: stdout: 6 main.mjs default from cjs, live 2, json 7, lazy loaded
//: files: counter.mjs data.json lazy.mjs old.cjs
import assert from 'node:assert';
import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

await writeFile('counter.mjs', 'export let count = 0;\nexport const add = (n) => { count += n; };\n');
await writeFile('old.cjs', 'module.exports = { from: "cjs" };\n');
await writeFile('data.json', '{"value": 7}\n');
await writeFile('lazy.mjs', 'await new Promise((go) => setTimeout(go, 5));\nexport default "loaded";\n');

const values = await Promise.all([1, 2, 3].map(async (n) => n));
const total = values.reduce((sum, n) => sum + n);

const counter = await import('./counter.mjs');
counter.add(2);
assert.throws(() => { counter.count = 9; }, TypeError);

const { default: old } = await import('./old.cjs');
const require = createRequire(import.meta.url);
const data = require('./data.json');
assert.deepStrictEqual(data, JSON.parse(await readFile(new URL('data.json', import.meta.url), 'utf8')));
const { default: lazy } = await import('./lazy.mjs');
assert.strictEqual(this, undefined);
console.log(total, basename(fileURLToPath(import.meta.url)), `default from ${old.from}, live ${counter.count},`,
  `json ${data.value}, lazy ${lazy}`);
