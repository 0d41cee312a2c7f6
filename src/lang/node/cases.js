'use strict';

// The role "cases": calls a function of the program with given arguments, and tells the engine what it returned or threw.
//
// docs/protocols/grading-roles.md is the contract.  Node cannot fork, so the engine gives one case to a process; several
// share one.  What the program does to its interpreter must not change the answer, so everything that is used after the
// program's first instruction is taken from the library here, and the program's code is only called in within().

const Module = require('module');
const { types } = require('util');
const { readFileSync } = require('fs');
const vm = require('vm');
const { canonical, lineIn, messageOf, quote, repr, typesOf } = require('./canon.js');
const { CHANNEL_FD, isThere, kinds, receive, send } = require('./channel.js');
const { leave, watchErrors } = require('./exit_watch.js');
const { exposeNames, persist } = require('./persist.js');
const { uncurry } = require('./primordials.js');

const BROKEN_EXIT = 70;
const MISSING_EXIT = 1;
const UNSETTLED_EXIT = 13;      // Node's own code for an await that nothing will ever settle
const CPU_MS = 5000;
const WALL_MS = 15000;
const REPR_MS = 1000;
const FLUSH_MS = 1000;
const POLL_MS = 20;
const TIMER_MAX = 2 ** 31 - 1;
const DOCUMENT_MAX = 16 << 20;
const FUNCTIONS_MAX = 100;
const SLOTS_NAME = '__caisson__';
const SETUP_NAME = '<setup>';

const { clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } = globalThis;
const { apply, construct, ownKeys } = Reflect;
const { defineProperty, freeze, getOwnPropertyDescriptor, hasOwn } = Object;
const { isPromise } = types;
const { _tickCallback: runTicks } = process;
const cpuUsage = process.cpuUsage.bind(process);
const uptime = process.uptime.bind(process);
const listenerCount = process.listenerCount.bind(process);
const listen = process.on.bind(process);
const unlisten = process.removeListener.bind(process);
const split = uncurry(String.prototype.split);
const then = uncurry(Promise.prototype.then);
const runInThisContext = uncurry(vm.Script.prototype.runInThisContext);
const unref = uncurry(timerClass().unref);

const trampoline = new vm.Script(`${SLOTS_NAME}.go()`);
const slots = { names: { __proto__: null }, act: undefined };
const known = knownValues();

let settings = null;            // what the engine has begun with
let filename = '';
let exported = [];              // objects in which a name is looked for
let current = null;             // the case that runs
let sent = 0;                   // results
let isLoaded = false;           // and the engine knows it
let ended = false;

function timerClass() {
  const timer = setTimeout(() => {}, 0);
  clearTimeout(timer);
  return Object.getPrototypeOf(timer);
}

// ---- what the engine asks for

function broken(why) {
  process.stderr.write(`run.js: what came over the channel is no beginning of cases: ${why}\n`);
  process.exit(BROKEN_EXIT);
}

// The arguments of a case, or what is wrong with them.
function argumentsOf({ args, args_python: python, kwargs, kwargs_python: kwargsPython }) {
  if ((python ?? kwargsPython ?? null) !== null)
    return { problem: 'arguments of a JavaScript function are JSON; args_python and kwargs_python are for Python' };
  try {
    if (JSON.stringify(JSON.parse(kwargs ?? '{}')) !== '{}')
      return { problem: 'JavaScript has no keyword arguments' };
    const list = JSON.parse(args ?? '[]');
    return Array.isArray(list) ? { args: list, problem: undefined } : { problem: 'the arguments are no JSON array' };
  } catch (error) {
    return { problem: `the arguments are no JSON: ${error.message}` };
  }
}

function caseOf(one, name) {
  const { i, function: own, cpu_ms: cpuMs = CPU_MS, wall_ms: wallMs = WALL_MS } = one;
  const title = own ?? name;
  if (!Number.isSafeInteger(i) || typeof title !== 'string' || !(cpuMs > 0) || !(wallMs > 0))
    throw new TypeError('a case needs "i", "function", and limits above 0');
  return { i, title, path: title.split('.'), cpuMs, wallMs: Math.min(Math.ceil(wallMs), TIMER_MAX), ...argumentsOf(one) };
}

// Waits for the engine's first word.  Before the program is there.
function takeBeginning() {
  if (!isThere()) {
    process.stderr.write(`run.js: descriptor ${CHANNEL_FD} is no channel; nobody can ask for anything\n`);
    process.exit(BROKEN_EXIT);
  }
  try {
    const text = receive(kinds.MESSAGE);
    if (text === null)
      process.exit(0);
    const { op, role, setup = '', function: name, cases } = JSON.parse(text.slice(1));
    if (text[0] !== 'E' || op !== 'begin' || role !== 'cases' || typeof setup !== 'string' || !Array.isArray(cases))
      throw new TypeError('it needs "op", "role" (cases), "setup", "function" and "cases"');
    const wanted = typeof name === 'string' && cases.length === 0 ? { title: name, path: name.split('.') } : undefined;
    settings = { setup, cases: cases.map((one) => caseOf(one, name)), wanted };
  } catch (error) {
    broken(error.message);
  }
}

// ---- before the cases

// The globals that the program finds, and the functions of the library, by their names.
function knownValues() {
  const values = { __proto__: null };
  for (const name of Reflect.ownKeys(globalThis).filter((key) => typeof key === 'string')) {
    const { value } = Object.getOwnPropertyDescriptor(globalThis, name);
    values[name] = { holder: globalThis, key: name, value };
    if (!/^[A-Z]/.test(name) || value === null || !['function', 'object'].includes(typeof value))
      continue;
    for (const [path, holder] of [[name, value], [`${name}.prototype`, value.prototype]]) {
      for (const key of Object.getOwnPropertyNames(holder ?? {})) {
        const member = Object.getOwnPropertyDescriptor(holder, key).value;
        if (typeof member === 'function')
          values[`${path}.${key}`] = { holder, key, value: member };
      }
    }
  }
  return values;
}

function instrument(code, sourceType) {
  return exposeNames(code, sourceType, `${SLOTS_NAME}.names`);
}

function exposeSlots() {
  const value = freeze({
    __proto__: null,
    set names(names) {
      slots.names = names;
    },
    go() {
      const { act } = slots;
      slots.act = undefined;
      act?.();
    },
  });
  defineProperty(globalThis, SLOTS_NAME, { value });
}

// The program could send for us in any case, but it need not find how by accident.
function hide() {
  for (const file of Object.keys(require.cache).filter((name) => name.startsWith(__dirname)))
    delete require.cache[file];
}

// Throws what is wrong with the set-up.
function compileSetup(typescript) {
  let code = settings.setup;
  if (typescript) {
    try {
      ({ code } = require('./typescript.js').strip(code, SETUP_NAME));
    } catch (error) {
      throw new SyntaxError(error?.message ?? 'the set-up is no TypeScript');
    }
  }
  let changed = { code, isAsync: false, columns: 0 };
  try {
    changed = persist(code);
  } catch {
    // V8 has the last word.
  }
  const importModuleDynamically = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER ?? ((name) => import(name));
  const script = new vm.Script(changed.code, { filename: SETUP_NAME, columnOffset: changed.columns, importModuleDynamically });
  return { script, isAsync: changed.isAsync };
}

// Watches the program being loaded, and calls go() after the set-up.  What the set-up declares is global.
function prepare(main, typescript, go) {
  ({ filename } = main);
  watchErrors(filename);
  listen('exit', loadingEnded);
  exposeSlots();
  send(kinds.STARTED);
  process.nextTick(() => {
    if (settings.setup === '') {
      hide();
      go();
    } else {
      setUp(typescript, go);
    }
  });
}

function setUp(typescript, go) {
  globalThis.require = Module.createRequire(filename);
  const { script, isAsync } = compileSetup(typescript);
  hide();
  // What goes wrong before this is the request's fault, and behind it the program's.
  const leave = () => {
    talk('{"op":"set_up"}');
    go();
  };
  const done = script.runInThisContext();
  if (isAsync)
    done.then(leave);
  else
    leave();
}

function loadingEnded() {
  send(kinds.DONE);
}

// ---- finding a function

function isThing(value) {
  return typeof value === 'function' || (typeof value === 'object' && value !== null);
}

function named(name) {
  if (isThing(slots.names) && hasOwn(slots.names, name))
    return slots.names[name]();
  for (let i = 0; i < exported.length; i++) {
    const holder = exported[i];
    if (!isThing(holder))
      continue;
    if (hasOwn(holder, name))
      return holder[name];
    if (typeof holder === 'function' && holder.name === name)
      return holder;
  }
  return hasOwn(globalThis, name) && known[name] === undefined ? globalThis[name] : undefined;
}

// {callee, self} or {callee, Class} for a method that needs an instance; undefined if there is no such function.
function find(path) {
  let self;
  let value = named(path[0]);
  for (let i = 1; i < path.length; i++) {
    if (!isThing(value))
      return undefined;
    self = value;
    value = self[path[i]];
    if (value === undefined && i === path.length - 1 && typeof self === 'function')
      return typeof self.prototype?.[path[i]] === 'function' ? { callee: self.prototype[path[i]], Class: self } : undefined;
  }
  return typeof value === 'function' ? { callee: value, self, Class: undefined } : undefined;
}

// The names of the functions that there are, as JSON.
function functions() {
  let out = '';
  let count = 0;
  const put = (holder, read) => {
    const names = isThing(holder) ? ownKeys(holder) : [];
    for (let i = 0; i < names.length && count < FUNCTIONS_MAX; i++) {
      try {
        if (typeof names[i] === 'string' && typeof read(names[i]) === 'function') {
          out += `${count > 0 ? ',' : ''}${quote(names[i])}`;
          count++;
        }
      } catch {
        // It was never reached, or is a getter that fails.
      }
    }
  };
  const { names: declared } = slots;
  within(REPR_MS, () => {
    put(declared, (name) => declared[name]());
    for (let i = 0; i < exported.length; i++)
      put(exported[i], (name) => (hasOwn(declared, name) ? undefined : exported[i][name]));
  });
  return `[${out}]`;
}

// ---- running the program's code

// Calls a function that does not throw, and ends it, busy loops too, when the time is over; then returns false.
function within(ms, act) {
  let done = false;
  slots.act = () => {
    act();
    done = true;
  };
  try {
    runInThisContext(trampoline, { __proto__: null, timeout: ms, displayErrors: false });
  } catch {
    // The time is over.
  }
  return done;
}

function cpuNow() {
  const { user, system } = cpuUsage();
  return (user + system) / 1000;
}

function wallNow() {
  return uptime() * 1000;
}

// Milliseconds in which this process was ready to run and had no CPU: the second number of schedstat, in ns.
function waitedNow() {
  try {
    return +split(readFileSync('/proc/self/schedstat', 'latin1'), ' ')[1] / 1e6 || 0;
  } catch {
    return 0;   // This kernel does not count.
  }
}

function begin(index) {
  const one = settings.cases[index];
  current = { __proto__: null, one, cpu: cpuNow(), wall: wallNow(), inside: true, outcome: undefined };
  if (one.problem !== undefined) {
    settle({ how: 'bad_case', message: one.problem });
    report();
    return;
  }
  const mine = current;
  const inTime = within(one.wallMs, () => {
    call(one, mine);
    if (mine.outcome === undefined)
      goOn(mine);
  });
  mine.inside = false;
  if (!inTime && mine.outcome === undefined)
    settle({ how: 'timeout', by: 'wall' });
  const { lost, ticking } = mine;
  if (mine.outcome === undefined)
    mine.poll = unref(setInterval(checkTime, POLL_MS));
  else
    report();
  // Node ends a process that comes back from a tick without having seen its end, or the error that ended it.
  if (ticking)
    abandon(0);
  if (lost !== undefined)
    throw lost.error;
}

// What waits for nothing else goes on at once, and within reach of the time limit.
function goOn(mine) {
  mine.ticking = true;
  try {
    apply(runTicks, process, []);
  } catch (error) {
    mine.lost = { error };
  }
  mine.ticking = false;
}

function call(one, mine) {
  let found;
  try {
    found = find(one.path);
  } catch {
    // A getter of the program's, or a name that its text never came to.
  }
  if (found === undefined) {
    settle({ how: 'missing' });
    return;
  }
  try {
    const value = apply(found.callee, found.Class === undefined ? found.self : construct(found.Class, []), one.args);
    if (!isPromise(value))
      settle({ how: 'returned', value });
    else
      then(value, (result) => arrive(mine, { how: 'returned', value: result }),
        (error) => arrive(mine, { how: 'raised', error }));
  } catch (error) {
    settle({ how: 'raised', error });
  }
}

function settle(outcome) {
  current.outcome = outcome;
}

// A promise is settled, now or later.
function arrive(mine, outcome) {
  if (mine !== current || mine.outcome !== undefined)
    return;
  settle(outcome);
  if (!mine.inside)
    report();
}

function timeOver(one) {
  const { cpuMs, wallMs } = one.one;
  if (cpuNow() - one.cpu >= cpuMs)
    return 'cpu';
  return wallNow() - one.wall >= wallMs ? 'wall' : undefined;
}

function checkTime() {
  const by = current === null ? undefined : timeOver(current);
  if (by !== undefined)
    arrive(current, { how: 'timeout', by });
}

// ---- telling the engine

function talk(document) {
  send(kinds.MESSAGE, `E${document}`);
}

function tenths(ms) {
  return `${(ms * 10 | 0) / 10}`;
}

function described({ value, error, how, by, message, code }) {
  switch (how) {
  case 'returned':
    return valueMembers(value);
  case 'raised': {
    const { type, mro } = typesOf(error);
    const message = quote(askWithin(messageOf, error) ?? '');
    const line = askWithin(() => lineIn(error, filename)) ?? null;
    return `"how":"raised","type":${quote(type)},"mro":${mro},"message":${message},"line":${line}`;
  }
  case 'timeout':
    return `"how":"timeout","by":"${by}","waited_ms":${tenths(by === 'wall' ? waitedNow() : 0)}`;
  case 'bad_case':
    return `"how":"bad_case","message":${quote(message)}`;
  default:
    return `"how":"exited","exit_code":${code}`;
  }
}

function valueMembers(value) {
  const { type, mro } = typesOf(value);
  const text = canonical(value);
  if (text !== null) {
    const members = `"how":"returned","value":${quote(text)},"type":${quote(type)},"mro":${mro}`;
    if (members.length < DOCUMENT_MAX - 4096)
      return members;
  }
  return `"how":"unencodable","type":${quote(type)},"mro":${mro},"repr":${quote(askWithin(repr, value) ?? '')}`;
}

// For what may need a tag of an object, or the head of a stack: they may be getters of the program's.
function askWithin(describe, value) {
  let answer;
  within(REPR_MS, () => {
    try {
      answer = describe(value);
    } catch {
      // There is nothing to say then.
    }
  });
  return answer;
}

// What the program has put into the place of something of the library's.
function signs() {
  let names = '';
  const paths = ownKeys(known);
  for (let i = 0; i < paths.length && names.length < 200; i++) {
    const { holder, key, value } = known[paths[i]];
    const property = getOwnPropertyDescriptor(holder, key);
    if (typeof value === 'function' && (property === undefined || property.value !== value))
      names += `${names === '' ? '' : ', '}${paths[i]}`;
  }
  return names === '' ? '[]' : `[{"sign":"patched_builtins","detail":${quote(names)}}]`;
}

function tell(one, members) {
  const cpu = current === null ? 0 : cpuNow() - current.cpu;
  const wall = current === null ? 0 : wallNow() - current.wall;
  talk(`{"op":"result","i":${one.i},${members},"cpu_ms":${tenths(cpu)},"wall_ms":${tenths(wall)},"stdout":"","stderr":"",`
    + '"signs":[]}');
  sent++;
}

// The case has come to its end, and none of the program's code is running.
function report() {
  const { one, outcome, poll } = current;
  clearInterval(poll);
  if (outcome.how === 'missing') {
    tellMissing(one.title);
    return;
  }
  const by = outcome.how === 'returned' || outcome.how === 'raised' ? timeOver(current) : undefined;
  tell(one, described(by === undefined ? outcome : { how: 'timeout', by }));
  current = null;
  next();
}

// Without cases: whether the function that the request names is not there.
function isMissing({ path }) {
  let found;
  within(REPR_MS, () => {
    try {
      found = find(path);
    } catch {
      // As in a case.
    }
  });
  return found === undefined;
}

function tellMissing(title) {
  talk(`{"op":"missing","function":${quote(title)},"functions":${functions()}}`);
  end(MISSING_EXIT);
}

function next() {
  if (ended)
    return;
  if (!isLoaded) {
    isLoaded = true;
    talk('{"op":"ready"}');
  }
  if (settings.wanted !== undefined && isMissing(settings.wanted)) {
    tellMissing(settings.wanted.title);
    return;
  }
  if (sent < settings.cases.length) {
    setImmediate(() => begin(sent));
    return;
  }
  talk(`{"op":"end","signs":${signs()}}`);
  end(0);
}

// Standard output is a pipe that may be full, and Node forgets what waits for it.
function end(status) {
  ended = true;
  send(kinds.DONE);
  let waiting = 2;
  const flushed = () => {
    waiting--;
    if (waiting === 0)
      leave(status);
  };
  setTimeout(() => leave(status), FLUSH_MS);
  flush('stdout', flushed);
  flush('stderr', flushed);
}

function flush(name, flushed) {
  try {
    if (process[name].writableLength > 0)
      process[name].write('', flushed);
    else
      flushed();
  } catch {
    flushed();
  }
}

// The process is about to end; what has no result yet gets that one.
function abandon(status) {
  if (!ended) {
    ended = true;
    const code = typeof status === 'number' || typeof status === 'string' ? status & 255 : 0;
    for (let i = sent; i < settings.cases.length; i++) {
      tell(settings.cases[i], `"how":"exited","exit_code":${code}`);
      current = null;
    }
    talk(`{"op":"end","signs":${signs()}}`);
    send(kinds.DONE);
  }
  leave(0);
}

// Nothing is left that could settle what the case waits for.
function starve() {
  if (current !== null)
    arrive(current, { how: 'exited', code: UNSETTLED_EXIT });
}

// An error that nobody has caught ends the case, unless the program wants such errors.
function fail(error) {
  if (listenerCount('uncaughtException') === 1 && current !== null)
    arrive(current, { how: 'raised', error });
}

// The program is loaded; holders are the objects that may have its functions.
function serve(holders) {
  exported = holders;
  unlisten('exit', loadingEnded);
  listen('exit', abandon);
  listen('beforeExit', starve);
  listen('uncaughtException', fail);
  process.reallyExit = abandon;
  next();
}

module.exports = { instrument, prepare, serve, takeBeginning };
