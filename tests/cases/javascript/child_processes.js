//: what: child processes: output, input, status, signal, time-out, and a forked module with messages
//: stdout: sorted a,b,c; status 3; signal SIGTERM; timed out; forked {"square":49}; shell 2
const assert = require('assert');
const { execFileSync, execSync, fork, spawn, spawnSync } = require('child_process');
const { once } = require('events');

if (process.argv[2] === 'child') {
  process.on('message', (number) => {
    process.send({ square: number * number });
    process.disconnect();
  });
} else {
  main();
}

async function main() {
  const sort = spawn('sort');
  sort.stdin.end('c\na\nb\n');
  let sorted = '';
  for await (const chunk of sort.stdout)
    sorted += chunk;

  const { status, stderr } = spawnSync('bash', ['-c', 'echo problem >&2; exit 3'], { encoding: 'utf8' });
  assert.strictEqual(stderr, 'problem\n');

  const sleeper = spawn('sleep', ['30']);
  sleeper.kill();
  const [, signal] = await once(sleeper, 'exit');

  let late = 'in time';
  try {
    execFileSync('sleep', ['30'], { timeout: 100 });
  } catch (error) {
    late = error.code === 'ETIMEDOUT' ? 'timed out' : error.message;
  }
  const child = fork(__filename, ['child']);
  child.send(7);
  const [message] = await once(child, 'message');
  const [code] = await once(child, 'exit');
  assert.strictEqual(code, 0);
  const lines = execSync('printf "1\\n2\\n" | wc -l', { encoding: 'utf8' }).trim();
  console.log(`sorted ${sorted.trim().split('\n')}; status ${status}; signal ${signal}; ${late};`,
    `forked ${JSON.stringify(message)}; shell ${lines}`);
}
