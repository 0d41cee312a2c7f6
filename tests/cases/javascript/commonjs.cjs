//: what: CommonJS in a program that is called .cjs: modules that require each other, a folder with an index, a cycle, the cache and JSON
//: stdout: main true, index area 12, cycle a-partial/b-done, cached true, reloaded 2, json caisson, missing MODULE_NOT_FOUND
const assert = require("assert");
const fs = require("fs");
const path = require("path");

fs.mkdirSync("shapes");
fs.writeFileSync("shapes/index.js", "exports.area = (w, h) => require('./multiply')(w, h);\n");
fs.writeFileSync("shapes/multiply.js", "module.exports = (a, b) => a * b;\n");
fs.writeFileSync("a.js", "exports.state = 'a-partial';\nconst b = require('./b');\nexports.state = 'a-done';\nexports.saw = b.saw + '/' + b.state;\n");
fs.writeFileSync("b.js", "exports.saw = require('./a').state;\nexports.state = 'b-done';\n");
fs.writeFileSync("loads.js", "globalThis.loads = (globalThis.loads ?? 0) + 1;\nmodule.exports = { loads: globalThis.loads };\n");
fs.writeFileSync("package-data.json", '{"name": "caisson"}\n');

const shapes = require("./shapes");
const cycle = require("./a");
const first = require("./loads");
const cached = require("./loads") === first;
delete require.cache[require.resolve("./loads")];
const reloaded = require("./loads").loads;
assert.equal(require.resolve("./shapes"), path.join(__dirname, "shapes", "index.js"));
assert.equal(__filename, path.join(process.cwd(), "main.cjs"));
let missing;
try { require("./none"); } catch (error) { missing = error.code; }
exports.used = true;
assert.ok(module.exports.used);
console.log(`main ${require.main === module}, index area ${shapes.area(3, 4)}, cycle ${cycle.saw}, cached ${cached},`,
  `reloaded ${reloaded}, json ${require("./package-data.json").name}, missing ${missing}`);
