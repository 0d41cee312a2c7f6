'use strict';

// Watches how a program ends, without changing it: an uncaught error is described before Node prints it, and the
// value of the program is sent when it exits.  A worker then says with which status it leaves, since the kernel needs
// longer to take a Node apart than many a program runs.

const channel = require('./channel.js');
const { errorDocument, valueDocument } = require('./report.js');
const { pathToFileURL } = require('url');
const { inspect, types: { isNativeError, isPromise } } = require('util');

const { then } = Promise.prototype;
const { keys } = Object;
const { reallyExit } = process;
const ownListeners = listenersOfListeners();     // Node has some for signals

// Where instrumented programs (last_expression.js) leave what may be their value.
const slots = { value: undefined, returned: undefined };
const SLOTS_NAME = '__caisson__';
const RETURN_NAME = '__return_value__';

// Node's names for what can start processes and threads, or writes files when Node ends.
const { moduleLoadList, _getActiveRequests: activeRequests } = process;
const OUTLASTING = new Set(['Internal Binding process_wrap', 'Internal Binding spawn_sync',
  'NativeModule worker_threads', 'NativeModule trace_events']);
const STATUS_TYPES = new Set(['number', 'string', 'undefined']);

const listeners = [];
let failed = false;
let settled = { promise: undefined, value: undefined };
let announcing = false;
let rehearsing = false;

function exposeSlots() {
  Object.defineProperty(globalThis, SLOTS_NAME, { value: slots, configurable: true });
}

// Programs assign to this name without declaring it, which strict code may do only if it exists.
function exposeReturnName() {
  Object.defineProperty(globalThis, RETURN_NAME,
    { value: undefined, configurable: true, enumerable: false, writable: true });
}

function returnValue() {
  let value;
  try {
    value = slots.returned?.();
  } catch {
    // The program ended before its declaration of the name.
  }
  return value ?? globalThis[RETURN_NAME] ?? (failed ? undefined : slots.value);
}

// Only when nothing is left to do: earlier, our interest in a promise would hide from Node that nobody handles its
// rejection.
function awaitValue() {
  try {
    const value = returnValue();
    if (isPromise(value))
      then.call(value, (result) => { settled = { promise: value, value: result }; }, () => {});
  } catch {
    // A broken promise is shown as it is.
  }
}

// Would nothing be missed if everything were gone now?  A request is at work in another thread, and Node lets it finish.
function isAlone() {
  return activeRequests.call(process).length === 0 && !moduleLoadList.some((name) => OUTLASTING.has(name))
    && !keys(require.cache).some((file) => file.endsWith('.node'));
}

// For the last call that Node or the program makes.
const end = {
  reallyExit(code) {
    try {
      if (announcing && STATUS_TYPES.has(typeof code) && isAlone())
        channel.send(channel.kinds.EXITING, `${code & 255}`);
    } catch {
      // The program has changed something that we need.
    }
    if (!rehearsing)
      reallyExit.call(process, code);
  },
};

// process.exit() calls it when all listeners have run.  A program that has put in its own keeps that.
function announceExit() {
  if (announcing && process.reallyExit === reallyExit)
    process.reallyExit = end.reallyExit;
}

function sendEnding(valueMax) {
  try {
    let value = returnValue();
    if (value !== undefined && value === settled.promise)
      value = settled.value;
    if (value !== undefined)
      channel.send(channel.kinds.VALUE, valueDocument(value, valueMax));
  } catch {
    // A value that cannot even be looked at is as good as none.
  }
  channel.send(channel.kinds.DONE);
}

// What Node does after the last 'exit' listener of a program that calls process.exit().  A program that just ends has
// its heap taken apart first, which nobody sees and which takes longer than many a program.
function leave(code) {
  if (process.rawListeners('exit').at(-1) === leave)
    end.reallyExit(process.exitCode ?? code);
}

function listenersOfListeners() {
  return process.listenerCount('newListener') + process.listenerCount('removeListener');
}

// Has to be the last listener, so it is added when there is nothing left to do, and again if there was.
function leaveLast() {
  if (listenersOfListeners() > ownListeners)
    return;         // the program would see it
  process.removeListener('exit', leave);
  process.on('exit', leave);
}

function listen(name, listener) {
  process.on(name, listener);
  listeners.push([name, listener]);
}

// Where last_expression.js put something into the program.
const edited = { filename: '', edit: null };
const FRAME = /^( +at (?:.*\()?(?:async )?)((?:file:\/\/)?\/.*?)(?::(\d+):(\d+))?(\)?)$/;

function correctMessages(filename, edit) {
  Object.assign(edited, { filename, edit });
}

function isOfProgram(file) {
  return file === edited.filename || file === pathToFileURL(edited.filename).href;
}

// A line of a stack with the place that it has in the program's own text: {frame}, and where Node would show a line that
// was changed, {file, line, column, text} of the program's own.
function corrected(frame) {
  // V8 leaves out a place before the first line.
  const [, head, file, number = 0, place = 1, tail] = FRAME.exec(frame) ?? [];
  const { edit } = edited;
  if (file === undefined || Number(number) !== edit.line || !isOfProgram(file))
    return { frame };
  let { line, text } = edit;
  let column = place - 1;
  if (column > edit.column + edit.length)
    column -= edit.length;
  else if (column >= edit.column)
    ({ line, column, text } = edit.statement);
  return { frame: `${head}${file}:${line}:${column + 1}${tail}`, file, line, column, text };
}

// Corrects the stack of an error.  What corrected() says of its first frame, or null.
function correctStack(error) {
  if (edited.edit === null || !isNativeError(error))
    return null;
  try {
    const lines = error.stack.split('\n').map((line) => (/^ +at /.test(line) ? corrected(line) : line));
    error.stack = lines.map((line) => line.frame ?? line).join('\n');
    return lines.find((line) => typeof line !== 'string') ?? null;
  } catch {
    return null;        // the error is the program's, and so may be its stack
  }
}

// Node shows the changed line in the message of an error that came about there.  For these we print what it would print
// of the program's own line, and end as it ends.  Errors of Node's library show a line of the library.
// The mark of an error that a throw statement creates stands below `throw`, and the top frame names the error's own place.
function endWithMessage(error, { file, line, column, text }) {
  const before = text.slice(0, column).replace(/\bthrow\s+$/, '');
  const mark = `${before.replace(/[^\t]/g, ' ')}^`;
  process.stderr.write(`${file}:${line}\n${text}\n${mark}\n\n${inspect(error)}\n\nNode.js ${process.version}\n`);
  announcing = false;   // as where Node itself ends a program
  process.exit(1);
}

function watchErrors(filename) {
  listen('uncaughtExceptionMonitor', (error) => {
    if (process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback())
      return;
    failed = true;
    const top = correctStack(error);
    channel.send(channel.kinds.ERROR, errorDocument(error, filename));
    if (top?.text !== undefined && typeof error.code !== 'string')
      endWithMessage(error, top);
  });
}

function watch(filename, valueMax) {
  exposeReturnName();
  watchErrors(filename);
  listen('beforeExit', () => {
    awaitValue();
    leaveLast();
  });
  listen('exit', () => {
    announceExit();
    sendEnding(valueMax);
  });
}

// From now on EXITING is sent where that is right.
function announce() {
  announcing = true;
}

// The end of a program that watch() was called for and that did nothing.  Leaves nothing but compiled code.
function rehearse() {
  rehearsing = true;
  announce();
  slots.value = { list: [1, 'x', null] };
  process.emit('beforeExit', 0);
  process.emit('exit', 0);
  process.emit('uncaughtExceptionMonitor', new Error('x'), 'uncaughtException');
  rehearsing = announcing = failed = false;
  slots.value = undefined;
  process.reallyExit = reallyExit;
  process.removeListener('exit', leave);
  for (const [name, listener] of listeners.splice(0))
    process.removeListener(name, listener);
  delete globalThis[RETURN_NAME];
}

module.exports = { announce, correctMessages, exposeSlots, leave: end.reallyExit, rehearse, watch, watchErrors };
