//: what: an ES module with top-level await that writes, imports and re-imports other modules, with JSON and live bindings
//: stdout: 2 then 3, default greeter says hi, namespace a,b, json 1.5, again same, data 42, main main.mjs
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

await writeFile("counter.mjs", "export let n = 2;\nexport const step = () => { n++; };\n");
await writeFile("greeter.mjs", "const word = await Promise.resolve('hi');\nexport default () => `greeter says ${word}`;\n");
await writeFile("both.mjs", "export * from './left.mjs';\nexport { b } from './right.mjs';\n");
await writeFile("left.mjs", "export const a = 1;\n");
await writeFile("right.mjs", "export const b = 2;\nexport const hidden = 3;\n");
await writeFile("settings.json", JSON.stringify({ scale: 1.5 }));

const counter = await import("./counter.mjs");
const before = counter.n;
counter.step();
const { default: greet } = await import("./greeter.mjs");
const both = await import(pathToFileURL(path.resolve("both.mjs")).href);
assert.equal(typeof require, "undefined");
const { scale } = createRequire(import.meta.url)("./settings.json");
assert.deepEqual(JSON.parse(await readFile(new URL("settings.json", import.meta.url), "utf8")), { scale });
const again = (await import("./counter.mjs")) === counter;
const { default: data } = await import("data:text/javascript,export default 42");
await assert.rejects(import("./none.mjs"), { code: "ERR_MODULE_NOT_FOUND" });
await assert.rejects(async () => { counter.n = 5; }, TypeError);
console.log(`${before} then ${counter.n}, default ${greet()}, namespace ${Object.keys(both)}, json ${scale},`,
  `again ${again ? "same" : "other"}, data ${data}, main ${path.basename(fileURLToPath(import.meta.url))}`);
