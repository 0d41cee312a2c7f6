//: what: typed errors, and stack traces that have the lines and columns of the TypeScript text
//: stdout: Missing at 9:11 after a type that is gone; cause string; finally ran
interface Trace { line: number; column: number }
type Result<T, E extends Error = Error> = { ok: true; value: T } | { ok: false; error: E };

class Missing extends Error { override name = 'Missing'; }

function find(key: string, table: Readonly<Record<string, number>>): number {
  if (!(key in table))
    throw new Missing(`no ${key}`, { cause: typeof key });
  return table[key] as number;
}

function attempt<T>(action: () => T): Result<T, Missing> {
  try {
    return { ok: true, value: action() };
  } catch (error: unknown) {
    return { ok: false, error: error as Missing };
  } finally {
    cleaned = true;
  }
}

let cleaned = false;
const result = attempt<number>(() => find('b', { a: 1 }));
if (result.ok)
  throw new Error('found');
const [, line, column] = /main\.ts:(\d+):(\d+)/.exec(result.error.stack!)!;
const trace: Trace = { line: Number(line), column: Number(column) };
console.log(`${result.error.name} at ${trace.line - 1}:${trace.column} after a type that is gone;`,
  `cause ${result.error.cause}; ${cleaned ? 'finally ran' : 'no finally'}`);
