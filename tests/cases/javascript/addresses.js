//: what: URLs: parsing, building, relative references, queries, files and names in other scripts
//: stdout: example.org:8080 /a/c q=1,2&x=%C3%A9 #top | xn--bcher-kva.example | 3 params | file /tmp/a b.txt | invalid
const assert = require('assert');
const querystring = require('querystring');
const { fileURLToPath, pathToFileURL } = require('url');

const url = new URL('../c?q=1,2#top', 'https://user:pw@example.org:8080/a/b/');
url.searchParams.append('x', 'é');
assert.strictEqual(url.origin, 'https://example.org:8080');
assert.strictEqual(url.username, 'user');
assert.strictEqual(new URL('HTTP://EXAMPLE.org:80/%7Efoo/../bar').href, 'http://example.org/bar');

const idn = new URL('https://Bücher.example/').hostname;
const params = new URLSearchParams({ b: '2', a: '1' });
params.append('a', '3');
params.sort();
assert.strictEqual(params.toString(), 'a=1&a=3&b=2');
assert.deepStrictEqual(params.getAll('a'), ['1', '3']);
assert.deepStrictEqual({ ...querystring.parse('k=v&k=w') }, { k: ['v', 'w'] });

const file = fileURLToPath(pathToFileURL('/tmp/a b.txt'));
let verdict = 'valid';
try {
  new URL('http://');
} catch (error) {
  verdict = error.code === 'ERR_INVALID_URL' ? 'invalid' : error.code;
}
const query = url.search.slice(1).replace('%2C', ',');
console.log(`${url.host} ${url.pathname} ${query} ${url.hash} | ${idn} | ${[...params].length} params |`,
  `file ${file} | ${verdict}`);
