//: what: errors: causes, aggregates, stacks, async stacks, rejections that are handled and own classes
//: stdout: cause ENOENT | aggregate 2 | line 13 | async outer | unhandled late | NotFound 404 | any 3 | settled 2
const assert = require('assert');
const fs = require('fs');

class NotFound extends Error {
  constructor(what, options) {
    super(`no ${what}`, options);
    this.name = 'NotFound';
    this.status = 404;
  }
}
const where = new Error('here');

async function inner() {
  await null;
  throw new NotFound('page');
}
async function outer() {
  await inner();
}

async function main() {
  let cause;
  try {
    try {
      fs.readFileSync('/no/such/file');
    } catch (error) {
      throw new Error('cannot start', { cause: error });
    }
  } catch (error) {
    cause = error.cause.code;
  }
  const aggregate = await Promise.any([Promise.reject(1), Promise.reject(2)]).catch((error) => error);
  const [, line] = /main\.js:(\d+)/.exec(where.stack);
  const error = await outer().catch((caught) => caught);
  assert(error instanceof NotFound && error instanceof Error);
  const asynchronous = /at async outer/.test(error.stack) ? 'outer' : 'lost';

  const unhandled = await new Promise((tell) => {
    process.once('unhandledRejection', (reason) => tell(reason.message));
    Promise.reject(new Error('late'));
  });
  const any = await Promise.any([Promise.reject(1), Promise.resolve(3)]);
  const settled = (await Promise.allSettled([1, Promise.reject(2), 3])).filter(({ status }) => status === 'fulfilled');
  console.log(`cause ${cause} | aggregate ${aggregate.errors.length} | line ${line} | async ${asynchronous} |`,
    `unhandled ${unhandled} | ${error.name} ${error.status} | any ${any} | settled ${settled.length}`);
}

main();
