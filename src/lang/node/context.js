'use strict';

// Serves executions of JavaScript or TypeScript in one Node that lives on: variables, functions and modules last.
//
//     node context.js OPTIONS
//
// docs/protocols/runner-channel.md is the contract.  An execution is a script of the main context; persist.js makes its
// declarations last.  Between executions the event loop goes on, so timers and servers of earlier ones do.

const { Buffer } = require('buffer');
const fs = require('fs');
const Module = require('module');
const vm = require('vm');
const { pathToFileURL } = require('url');
const { inspect, types } = require('util');
const channel = require('./channel.js');
const { hideFrames } = require('./frames.js');
const { bindTools } = require('./tools_stub.js');
const { META, asFunction, persist } = require('./persist.js');
const report = require('./report.js');

const USAGE_EXIT = 2;
const BROKEN_EXIT = 70;
const INTERRUPTED = 'ERR_SCRIPT_EXECUTION_INTERRUPTED';
const DISPLAY_SYMBOL = Symbol.for('Jupyter.display');
const OUR_FRAMES = new RegExp(`^ +at (?:.*\\()?(?:async )?(?:node:|${__dirname.replace(/\W/g, '\\$&')}/)`);

const { CHANNEL_FD, FRAME_MAX, HEADER_SIZE, kinds } = channel;
const { exit } = process;
const { setImmediate } = globalThis;
const { then } = Promise.prototype;
// Before Node 20.12 a script has no import(); persist.js then calls a global of this name, whose first letter is U+2170.
// Remove it when 20.12 is our oldest.
const importing = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
const importer = importing === undefined ? '\u2170mport' : 'import';
// Counted: while it is started once, SIGINT is noted or ends what is interruptible, and never the process.
const { startSigintWatchdog, stopSigintWatchdog, watchdogHasPendingSigint } = process.binding('contextify');
const asyncContexts = withoutWarnings(() => process.binding('async_wrap'));
const INTERRUPT_POLL_MS = 20;

const limits = { value_max: 200000, display_max: 16777216, displays_max: 100 };
let typescript = false;
let executions = 0;
let running = null;             // the execution that goes on: {request, displays, waiting, poll, starve}
let giveUp = null;              // waiting for a stream that nothing moves any more
let requireOf = null;           // the folder that `require` looks from

// Node tells once that something is experimental or old, which is our business and not the program's.
function withoutWarnings(act) {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return act();
  } finally {
    process.emitWarning = emitWarning;
  }
}

class SystemExit extends Error {
  get name() {
    return 'SystemExit';
  }
}

class KeyboardInterrupt extends Error {
  get name() {
    return 'KeyboardInterrupt';
  }
}

function readOptions(text) {
  for (const pair of text.split(',')) {
    const [name, value] = pair.split('=', 2);
    if (Object.hasOwn(limits, name) && /^\d+$/.test(value))
      limits[name] = Number(value);
    else if (name === 'language')
      typescript = value === 'typescript';
  }
}

// ---- the channel

function broken(why) {
  process.stderr.write(`context.js: what came over the channel is no request: ${why}\n`);
  exit.call(process, BROKEN_EXIT);
}

// One packet; its thread is one of the pool's, so there is one more than usual.
function readPacket(take) {
  const packet = Buffer.alloc(FRAME_MAX + 1);
  fs.read(CHANNEL_FD, packet, 0, packet.length, null, (error, length) => {
    if (error?.code === 'EINTR')
      readPacket(take);         // by a signal that is for another thread, or nobody
    else
      take(error ? null : packet.subarray(0, length));
  });
}

function addThread() {
  const { UV_THREADPOOL_SIZE: size } = process.env;
  process.env.UV_THREADPOOL_SIZE = String((Number(size) || 4) + 1);
  return () => {
    if (size === undefined)
      delete process.env.UV_THREADPOOL_SIZE;
    else
      process.env.UV_THREADPOOL_SIZE = size;
  };
}

function readRequest(take, pieces = []) {
  readPacket((packet) => {
    if (packet === null || packet.length === 0) {
      exit.call(process, 0);
      return;
    }
    const frame = channel.open(packet, kinds.EXECUTE);
    if (frame === null) {
      broken('a frame has a wrong header');
      return;
    }
    pieces.push(frame.piece);
    if (frame.more)
      readRequest(take, pieces);
    else
      take(Buffer.concat(pieces).toString());
  });
}

function requestOf(text) {
  const document = JSON.parse(text);
  if (typeof document?.code !== 'string')
    throw new TypeError('an execution needs "code", a text');
  executions++;
  const { code, name, cwd, env, quiet, value_max: valueMax } = document;
  return { code, cwd, quiet: quiet === true, env: env ?? {}, name: name || `<cell ${executions}>`,
    valueMax: Number.isSafeInteger(valueMax) && valueMax >= 0 ? valueMax : limits.value_max };
}

function next() {
  readRequest((text) => {
    let request;
    try {
      request = requestOf(text);
    } catch (error) {
      broken(error.message);
      return;
    }
    execute(request);
  });
}

// ---- the text

function syntaxOf(error, request) {
  const { describe, describeTypeScript } = require('./syntax.js');
  if (!(error instanceof Error) || error.code === 'UnsupportedSyntax')
    return describeTypeScript(error, request.name, request.code);
  return describe(error, request.name, request.code);
}

// {script, isAsync, hasValue, names}, or throws for what is no program.
// Types become blanks, so brackets around the text come off again: an object literal would be a block without them.
function withoutTypes(code, name) {
  const { strip } = require('./typescript.js');
  try {
    return strip(code, name).code;
  } catch (error) {
    let inBrackets = '';
    try {
      inBrackets = /^\s*\{/.test(code) ? strip(`(${code}\n)`, name).code : '';
    } catch {
      // What is wrong with the text itself is told.
    }
    if (inBrackets.length !== code.length + 3)
      throw error;
    return inBrackets.slice(1, -2);
  }
}

function compile(request) {
  const source = typescript ? withoutTypes(request.code, request.name) : request.code;
  const raw = { code: source, names: [], isAsync: false, hasValue: true, columns: 0 };
  let changed = raw;
  try {
    changed = persist(source, importer);
  } catch {
    // V8 has the last word.
    if (/\bawait\b/.test(source))
      changed = { ...raw, ...asFunction(source) };
  }
  const scriptOf = ({ code, columns }) => new vm.Script(code,
    { filename: request.name, columnOffset: columns, importModuleDynamically: importing });
  try {
    return { ...changed, script: scriptOf(changed) };
  } catch (error) {
    // Rather what is wrong with the user's own words.
    if (!changed.isAsync && changed.columns === 0)
      scriptOf(raw);
    throw error;
  }
}

// ---- what a value looks like

function isJson(media) {
  return media === 'application/json' || media.endsWith('+json');
}

// A BigInt is an integer of JSON, for which JSON.stringify() has no form.
function jsonOf(content) {
  try {
    return JSON.stringify(content);
  } catch (error) {
    const text = report.jsonWithin(content, limits.display_max);
    if (text === undefined)
      throw error;
    return text;
  }
}

function encoded(media, content) {
  if (isJson(media))
    return jsonOf(content);
  if (typeof content === 'string')
    return JSON.stringify(content);
  return types.isUint8Array(content) ? JSON.stringify(Buffer.from(content).toString('base64')) : undefined;
}

function isBundle(value) {
  if (typeof value !== 'object' || value === null || types.isProxy(value) || Array.isArray(value))
    return false;
  const names = Object.keys(value);
  return names.length > 0 && names.every((name) => /^[\w.+-]+\/[\w.+-]+$/.test(name));
}

function bundleOf(value, textMax) {
  const data = {};
  let own;
  try {
    own = value?.[DISPLAY_SYMBOL]?.();
  } catch {
    // It has said nothing.
  }
  if (isBundle(own)) {
    for (const [media, content] of Object.entries(own))
      put(data, media, content);
  }
  data['text/plain'] ??= JSON.stringify(report.inspectedWithin(value, textMax));
  if (typeof value === 'object' && value !== null)
    data['application/json'] ??= report.jsonWithin(value, limits.display_max);
  return data;
}

function put(data, media, content) {
  try {
    data[media] = encoded(media, content);
  } catch {
    // A getter of the program's, or what JSON cannot express.
  }
}

// The JSON of a bundle, or of a text instead of it if that is too large.
function dataDocument(data) {
  const parts = Object.entries(data).filter(([, text]) => text !== undefined);
  const text = `{${parts.map(([media, content]) => `${JSON.stringify(media)}:${content}`).join(',')}}`;
  if (Buffer.byteLength(text) <= limits.display_max)
    return text;
  const names = parts.map(([media]) => media).join(', ').slice(0, 1000);
  return JSON.stringify({ 'text/plain': `<too large to be shown: ${names}; display_max=${limits.display_max} bytes>` });
}

// What fits into one frame goes at once, and nothing can cut it in two.  A longer one could be, by an interrupt, so it
// waits until no code of the program's runs.
function display(value) {
  if (running === null)
    return;
  running.displays++;
  if (running.displays > limits.displays_max) {
    if (running.displays === limits.displays_max + 1)
      process.stderr.write(`caisson: displays_max=${limits.displays_max} of this execution are used up; later ones are left out\n`);
    return;
  }
  let data = {};
  if (isBundle(value)) {
    for (const [media, content] of Object.entries(value))
      put(data, media, content);
    data['text/plain'] ??= JSON.stringify('');
  } else {
    data = bundleOf(value, running.request.valueMax);
  }
  const document = `{"data":${dataDocument(data)},"metadata":{}}`;
  if (running.waiting.length === 0 && Buffer.byteLength(document) <= FRAME_MAX - HEADER_SIZE)
    channel.send(kinds.DISPLAY, document);
  else
    running.waiting.push(document);
}

function sendWaiting() {
  for (const document of running.waiting.splice(0))
    channel.send(kinds.DISPLAY, document);
}

// ---- one execution

// The import() of a module that would be this file.
function importFrom(filename) {
  const from = Object.assign(new Module(filename), { filename });
  from._compile('module.exports = (...all) => all.length > 1 ? import(all[0], all[1]) : import(all[0])', filename);
  return from.exports;
}

let place = {};                 // what a program sees of where it is, as we set it

// Sets what a module knows of its place; not what the program has set itself.
function placeIn(folder) {
  const filename = `${folder}/[context]`;
  const { resolve } = Module.createRequire(filename);
  const next = { __dirname: folder, __filename: filename };
  for (const [name, value] of Object.entries(next)) {
    if (globalThis[name] === place[name])
      Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
  place = next;
  const meta = { dirname: folder, filename, url: pathToFileURL(filename).href,
    resolve: (name) => (Module.isBuiltin(name) ? `node:${name.replace(/^node:/, '')}` : pathToFileURL(resolve(name)).href) };
  Object.defineProperty(globalThis, META, { value: meta, configurable: true });
  if (importing === undefined)
    Object.defineProperty(globalThis, importer, { value: importFrom(`${folder}/`), configurable: true });
}

function enterFolder(folder) {
  if (folder !== undefined && folder !== null)
    process.chdir(folder);
  const current = process.cwd();
  if (requireOf !== current && (requireOf === null || globalThis.require?.isOurs === true)) {
    globalThis.require = Module.createRequire(`${current}/[context]`);
    Object.defineProperty(globalThis.require, 'isOurs', { value: true });
    if (typescript)
      require('./typescript.js').extendRequire();
  }
  if (requireOf !== current)
    placeIn(current);
  requireOf = current;
}

function setEnvironment(variables) {
  const before = Object.entries(variables).map(([name]) => [name, process.env[name]]);
  Object.assign(process.env, variables);
  return () => {
    for (const [name, value] of before) {
      if (value === undefined)
        delete process.env[name];
      else
        process.env[name] = value;
    }
  };
}

// Some globals of Node's are accessors; a `var` of that name would assign to them.
function makeRoom(names) {
  for (const name of names) {
    const property = Object.getOwnPropertyDescriptor(globalThis, name);
    if (property !== undefined && !('value' in property) && property.configurable)
      Object.defineProperty(globalThis, name, { value: undefined, configurable: true, enumerable: true, writable: true });
  }
}

const interruptible = new vm.Script('(go) => go()', { filename: `${__dirname}/context.js` }).runInThisContext();
const trampoline = new vm.Script('__caisson__()', { filename: `${__dirname}/context.js` });

function asyncDepth() {
  return asyncContexts.async_hook_fields[asyncContexts.constants.kStackLength];
}

// Whose callback an interrupt has ended cannot take itself off this stack, and Node ends the process when it finds it there.
function leaveAsync(depth) {
  while (asyncDepth() > depth)
    asyncContexts.popAsyncContext(asyncContexts.async_id_fields[asyncContexts.constants.kExecutionAsyncId]);
}

// Calls a function that SIGINT ends even if it is a busy loop.
function runInterruptible(go) {
  const depth = asyncDepth();
  Object.defineProperty(globalThis, '__caisson__', { value: () => interruptible(go), configurable: true });
  try {
    return trampoline.runInThisContext({ breakOnSigint: true, displayErrors: false });
  } finally {
    delete globalThis.__caisson__;
    leaveAsync(depth);
  }
}

// Forget a SIGINT that was for nobody.
function forgetInterrupt() {
  if (watchdogHasPendingSigint()) {
    stopSigintWatchdog();
    startSigintWatchdog();
  }
}

function interruption() {
  return new Promise((_, reject) => {
    running.poll = setInterval(() => {
      if (watchdogHasPendingSigint())
        reject(new KeyboardInterrupt('interrupted'));
    }, INTERRUPT_POLL_MS).unref();
    running.starve = () => reject(new Error('top-level await: nothing is left that could settle the promise'));
  });
}

// What has been asked for, from its first instruction on.
async function run(request, program) {
  const interrupted = interruption();
  interrupted.catch(() => {});
  const ignore = () => {};
  let result = runInterruptible(() => {
    if (watchdogHasPendingSigint())
      throw new KeyboardInterrupt('interrupted');
    enterFolder(request.cwd);
    makeRoom(program.names);
    const value = program.script.runInThisContext({ displayErrors: false });
    // We shall look at these, so nobody need be told that they were rejected.
    if (types.isPromise(value))
      then.call(value, (list) => { if (program.isAsync && types.isPromise(list?.[0])) then.call(list[0], ignore, ignore); }, ignore);
    // What waits for nothing else goes on at once, and within reach of an interrupt.
    process._tickCallback();
    return [value];
  })[0];
  if (types.isPromise(result))
    result = await Promise.race([interrupted, new Promise((resolve, reject) => { then.call(result, resolve, reject); })]);
  if (program.isAsync && result !== undefined) {
    [result] = result;
    if (types.isPromise(result))
      result = await Promise.race([interrupted, result]);
  }
  return program.hasValue ? result : undefined;
}

function withoutOurFrames(error) {
  if (types.isNativeError(error)) {
    try {
      const lines = String(error.stack).split('\n');
      error.stack = lines.filter((line) => !OUR_FRAMES.test(line)).join('\n');
    } catch {
      // It is the program's.
    }
  }
}

function show(error) {
  try {
    process.stderr.write(`Uncaught ${types.isNativeError(error) ? error.stack : inspect(error)}\n`);
  } catch {
    // The program has broken its stderr, or its error.
  }
}

function fail(error, request) {
  if (error?.code === INTERRUPTED)
    error = new KeyboardInterrupt('interrupted');
  if (error instanceof KeyboardInterrupt)
    error.stack = 'KeyboardInterrupt';
  withoutOurFrames(error);
  channel.send(kinds.ERROR, report.errorDocument(error, request.name));
  if (!(error instanceof SystemExit) && !request.quiet)
    show(error);
}

function sendValue(value, request) {
  const document = report.valueDocument(value, request.valueMax);
  const data = bundleOf(value, request.valueMax);
  channel.send(kinds.VALUE, `${document.slice(0, -1)},"data":${dataDocument(data)}}`);
}

function refuse(error, request) {
  const syntax = syntaxOf(error, request);
  channel.send(kinds.SYNTAX, JSON.stringify(syntax.document));
  if (!request.quiet)
    process.stderr.write(`Uncaught ${syntax.text}\n`);
  channel.send(kinds.DONE);
}

async function execute(request) {
  let program;
  try {
    program = compile(request);
  } catch (error) {
    refuse(error, request);
    next();
    return;
  }
  running = { request, displays: 0, waiting: [], poll: undefined, starve: () => {} };
  forgetInterrupt();
  channel.send(kinds.STARTED);
  const restore = setEnvironment(request.env);
  let value;
  let failure = null;
  try {
    value = await run(request, program);
  } catch (error) {
    failure = [error];
  }
  clearInterval(running.poll);
  restore();
  sendWaiting();
  try {
    if (failure !== null)
      fail(failure[0], request);
    else if (value !== undefined)
      sendValue(value, request);
  } catch {
    // What cannot even be looked at is as good as nothing.
  }
  running = null;
  await flushed(process.stdout);
  await flushed(process.stderr);
  channel.send(kinds.DONE);
  next();
}

// Pipes are written at once.  But an interrupt may have come between the write and the stream's taking note of it, and
// then the stream would wait for ever, with all that is written later.
async function flushed(stream) {
  try {
    if (stream.writableLength === 0 && stream._writableState.writing === false)
      return;
    await new Promise(setImmediate);
    const { _handle: handle, _writableState: state } = stream;
    if (state.writing && handle?.writeQueueSize === 0)
      state.onwrite();
    await new Promise((resolve) => {
      giveUp = resolve;
      stream.write('', resolve);
    });
  } catch {
    // The program has put something else in its place.
  }
  giveUp = null;
}

// ---- the process

function watch() {
  startSigintWatchdog();
  process.on('beforeExit', () => {
    running?.starve();
    giveUp?.();
  });
  process.on('uncaughtException', (error) => {
    if (error instanceof SystemExit || process.listenerCount('uncaughtException') > 1)
      return;
    withoutOurFrames(error);
    show(error);
  });
  process.exit = (code) => {
    throw new SystemExit(String(code ?? process.exitCode ?? 0));
  };
}

function main() {
  if (process.argv.length < 3) {
    process.stderr.write('usage: context.js OPTIONS\n');
    process.exitCode = USAGE_EXIT;
    return;
  }
  if (!channel.isThere()) {
    process.stderr.write(`context.js: descriptor ${CHANNEL_FD} is no channel; nobody can ask for anything\n`);
    process.exitCode = BROKEN_EXIT;
    return;
  }
  readOptions(process.argv[2]);
  process.argv.splice(1);
  watch();
  // Its loader is made at the first call.
  if (importing !== undefined)
    withoutWarnings(() => new vm.Script('import("node:fs")', { importModuleDynamically: importing }).runInThisContext());
  bindTools();
  hideFrames();
  Object.assign(globalThis, { display, module: new Module('.'), exports: {} });
  const restore = addThread();
  next();
  restore();
  channel.send(kinds.HELLO, JSON.stringify({ runner: 'node', version: process.versions.node, pid: process.pid, context: true }));
}

main();
