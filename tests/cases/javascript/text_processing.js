//: what: a small parser and evaluator, a template, a table with padding and console formats
//: stdout-has: 2 + 3 * (4 - 1) = 11
const assert = require('assert');
const util = require('util');

function tokens(text) {
  return [...text.matchAll(/\s*(?:(\d+(?:\.\d+)?)|(.))/gy)].map(([, number, sign]) => number ?? sign);
}

function evaluate(text) {
  const rest = tokens(text);
  const levels = [{ '+': (a, b) => a + b, '-': (a, b) => a - b }, { '*': (a, b) => a * b, '/': (a, b) => a / b }];
  function atom() {
    const token = rest.shift();
    if (token !== '(')
      return Number(token);
    const value = expression(0);
    assert.strictEqual(rest.shift(), ')');
    return value;
  }
  function expression(level) {
    if (level === levels.length)
      return atom();
    let value = expression(level + 1);
    while (rest[0] in levels[level])
      value = levels[level][rest.shift()](value, expression(level + 1));
    return value;
  }
  return expression(0);
}

const text = '2 + 3 * (4 - 1)';
console.log(`${text} = ${evaluate(text)}`);
console.table([{ name: 'a', value: 1 }, { name: 'b', value: 2 }]);
console.log('%s is %d years, %i, %j, %o', 'Ada', 36.5, 36.9, { a: 1 }, [1]);
assert.strictEqual(util.inspect(new Map([['k', { deep: { deeper: { deepest: 1 } } }]]), { depth: 0 }), 'Map(1) { \'k\' => [Object] }');
assert.strictEqual('x'.padStart(3, '-') + 'y'.padEnd(3), '--xy  ');
assert.strictEqual('a-b_c d'.replace(/[-_ ](\w)/g, (_, letter) => letter.toUpperCase()), 'aBCD');
console.error('a note beside the results');
