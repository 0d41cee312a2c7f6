//: what: typed promises, async generators, files and a queue with limited concurrency
//: stdout: squares 1,4,9,16 peak 2, lines 3, failed boom, file {"ok":true}
//: files: out.json
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

type Job<T> = () => Promise<T>;

async function limited<T>(jobs: readonly Job<T>[], limit: number): Promise<T[]> {
  const results: T[] = new Array(jobs.length);
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < jobs.length) {
      const mine = next++;
      results[mine] = await jobs[mine]!();
    }
  };
  await Promise.all(Array.from({ length: limit }, worker));
  return results;
}

async function* lines(text: string): AsyncGenerator<string, void, undefined> {
  for (const line of text.split('\n')) {
    await sleep(1);
    yield line;
  }
}

let running = 0, peak = 0;
const squares = await limited([1, 2, 3, 4].map((n): Job<number> => async () => {
  peak = Math.max(peak, ++running);
  await sleep(3);
  running--;
  return n * n;
}), 2);

let count = 0;
for await (const _line of lines('a\nb\nc'))
  count++;
const failed: string = await limited<never>([async () => { throw new Error('boom'); }], 1).then(() => 'none', (error: Error) => error.message);
await writeFile('out.json', JSON.stringify({ ok: true }));
const file = await readFile('out.json', 'utf8');
console.log(`squares ${squares} peak ${peak}, lines ${count}, failed ${failed}, file ${file}`);
