'use strict';

// Watches how a program ends, without changing it: an uncaught error is described before Node prints it, and the
// value of the program is sent when it exits.

const channel = require('./channel.js');
const { errorDocument, valueDocument } = require('./report.js');
const { isPromise } = require('util').types;

const { then } = Promise.prototype;
const { reallyExit } = process;
const ownListeners = listenersOfListeners();     // Node has some for signals

// Where instrumented programs (lastexpr.js) leave what may be their value.
const slots = { value: undefined, returned: undefined };
const SLOTS_NAME = '__caisson__';
const RETURN_NAME = '__return_value__';

let failed = false;
let settled = { promise: undefined, value: undefined };

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
    reallyExit.call(process, process.exitCode ?? code);
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

function watch(filename, valueMax) {
  exposeReturnName();
  process.on('uncaughtExceptionMonitor', (error) => {
    if (process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback())
      return;
    failed = true;
    channel.send(channel.kinds.ERROR, errorDocument(error, filename));
  });
  process.on('beforeExit', () => {
    awaitValue();
    leaveLast();
  });
  process.on('exit', () => sendEnding(valueMax));
}

module.exports = { exposeSlots, watch };
