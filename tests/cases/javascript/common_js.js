//: what: CommonJS: own modules, the cache, circular requires, JSON, module.paths and require.main
//: stdout: area 12, cached true, circular a-half, json 3, main true, missing MODULE_NOT_FOUND
//: files: lib/a.js lib/b.js lib/shapes.js lib/table.json
const assert = require('assert');
const fs = require('fs');
const path = require('path');

fs.mkdirSync('lib');
fs.writeFileSync('lib/shapes.js', 'exports.area = (w, h) => w * h;\nexports.loaded = (exports.loaded ?? 0) + 1;\n');
fs.writeFileSync('lib/a.js', 'exports.state = "a-half";\nexports.seen = require("./b").seen;\nexports.state = "a-whole";\n');
fs.writeFileSync('lib/b.js', 'exports.seen = require("./a").state;\n');
fs.writeFileSync('lib/table.json', '[1, 2, 3]');

const shapes = require('./lib/shapes');
const cached = require('./lib/shapes.js') === shapes && require.cache[path.resolve('lib/shapes.js')] !== undefined;
const { seen, state } = require('./lib/a');
assert.strictEqual(state, 'a-whole');

let missing = 'found';
try {
  require('./lib/none');
} catch (error) {
  missing = error.code;
}
assert.strictEqual(__filename, '/home/user/main.js');
assert.strictEqual(__dirname, process.cwd());
assert(module.paths[0].endsWith('/home/user/node_modules'));
const main = require.main === module && process.argv[1] === __filename;
console.log(`area ${shapes.area(3, 4)}, cached ${cached}, circular ${seen}, json ${require('./lib/table.json').length},`,
  `main ${main}, missing ${missing}`);
