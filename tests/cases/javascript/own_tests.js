//: what: tests with node:test and mocks, told to standard error, in the program itself
//: stdout: 4 passed, mock called 2
const assert = require('node:assert');
const { after, describe, it, mock } = require('node:test');

function retry(action, times) {
  for (let n = 1; ; n++) {
    try {
      return action(n);
    } catch (error) {
      if (n === times)
        throw error;
    }
  }
}

let passed = 0;
const action = mock.fn((n) => { if (n < 2) throw new Error('not yet'); return n; });
// The report of node:test goes to standard output; what counts here is what this program says itself.
const { write } = process.stdout;
process.stdout.write = () => true;

describe('retry', () => {
  it('gives the first result', () => { assert.strictEqual(retry(() => 7, 3), 7); passed++; });
  it('tries again', () => { assert.strictEqual(retry(action, 3), 2); passed++; });
  it('gives up', () => { assert.throws(() => retry(() => { throw new Error('never'); }, 2), /never/); passed++; });
  it('waits', async () => { await new Promise((go) => setTimeout(go, 5)); passed++; });
  after(() => {
    process.stdout.write = write;
    process.stdout.write(`${passed} passed, mock called ${action.mock.calls.length}\n`, () => { process.stdout.write = () => true; });
  });
});
