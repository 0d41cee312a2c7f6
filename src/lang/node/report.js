'use strict';

// The documents about a run: what went wrong, and its value.
//
// They describe objects that a program made, after the program may have changed anything.  So this file takes what it
// needs from the library when it is loaded, reads properties through their descriptors (a getter is a call of the
// program's code), and builds every text within a limit.

const { Buffer } = require('buffer');
const { inspect, types } = require('util');

const DEPTH_MAX = 200;              // JSON readers refuse deep documents, and so do we
const MESSAGE_MAX = 4000;
const LINE_MAX = 1000;
const LINES_MAX = 100;
const LINES_HEAD = 30;
const TRACEBACK_BYTES_MAX = 32000;  // with the message it fits in one frame, however many characters need escapes

const { stringify } = JSON;
const { isArray } = Array;
const { byteLength } = Buffer;
const { getOwnPropertyDescriptor, getPrototypeOf, keys } = Object;
const LONE_SURROGATE = /\p{Surrogate}/u;

class NotJson extends Error {}
class Full extends Error {}

function wellFormed(text) {
  return LONE_SURROGATE.test(text) ? text.replace(/\p{Surrogate}/gu, '\uFFFD') : text;
}

function quote(text) {
  return stringify(wellFormed(text));
}

// The longest beginning of a text whose quoted form has at most limit bytes, and whether that is all of it.
function quoteWithin(text, limit) {
  let head = text.slice(0, limit);
  let quoted = quote(head);
  for (let size = byteLength(quoted); size > limit + 2; size = byteLength(quoted)) {
    head = head.slice(0, Math.min(head.length - 1, Math.floor(head.length * limit / size)));
    quoted = quote(head);
  }
  return [quoted, head.length === text.length];
}

class Text {
  constructor(limit) {
    this.parts = [];
    this.room = limit;
  }

  put(text) {
    this.parts[this.parts.length] = text;
    this.room -= byteLength(text);
    if (this.room < 0)
      throw new Full();
  }
}

function putJson(out, value, depth) {
  switch (typeof value) {
  case 'string':
    putJsonString(out, value);
    return;
  case 'number':
    if (!Number.isFinite(value))
      throw new NotJson();
    out.put(`${value}`);
    return;
  case 'bigint':
    out.put(`${value}`);
    return;
  case 'boolean':
    out.put(value ? 'true' : 'false');
    return;
  case 'object':
    if (value === null)
      out.put('null');
    else if (depth === DEPTH_MAX || types.isProxy(value))
      throw new NotJson();
    else if (isArray(value))
      putJsonArray(out, value, depth);
    else
      putJsonObject(out, value, depth);
    return;
  default:
    throw new NotJson();
  }
}

function putJsonString(out, value) {
  // Cut before escaping, so that no copy is much larger than the room there is.
  const text = value.slice(0, Math.max(out.room, 0) + 1);
  if (LONE_SURROGATE.test(text) && text.length === value.length)
    throw new NotJson();
  out.put(quote(text));
}

function putJsonArray(out, array, depth) {
  out.put('[');
  for (let i = 0; i < array.length; i++) {
    if (i > 0)
      out.put(',');
    putJson(out, dataProperty(array, i), depth + 1);
  }
  out.put(']');
}

function putJsonObject(out, object, depth) {
  const prototype = getPrototypeOf(object);
  // An object from another context (vm) has that context's Object.prototype.
  if (prototype !== null && getPrototypeOf(prototype) !== null)
    throw new NotJson();
  if (className(object) !== 'Object' && prototype !== null)
    throw new NotJson();
  let separator = '';
  out.put('{');
  for (const key of keys(object)) {
    const value = dataProperty(object, key);
    if (value === undefined)
      continue;               // as JSON.stringify does
    out.put(separator);
    putJsonString(out, key);
    out.put(':');
    putJson(out, value, depth + 1);
    separator = ',';
  }
  out.put('}');
}

function dataProperty(object, key) {
  const property = getOwnPropertyDescriptor(object, key);
  if (property !== undefined && !('value' in property))
    throw new NotJson();
  return property?.value;
}

// The name of the class that made a value, found without running any code of the program's.
function className(value) {
  if (value === null)
    return 'null';
  if (typeof value !== 'object')
    return typeof value;
  for (let object = value, hops = 0; object !== null && hops < DEPTH_MAX; object = getPrototypeOf(object), hops++) {
    if (types.isProxy(object))
      return 'Proxy';
    const constructor = getOwnPropertyDescriptor(object, 'constructor')?.value;
    if (typeof constructor === 'function' && !types.isProxy(constructor)) {
      const name = getOwnPropertyDescriptor(constructor, 'name')?.value;
      if (typeof name === 'string' && name !== '')
        return name.slice(0, LINE_MAX);
    }
  }
  return 'Object';
}

function inspected(value, limit) {
  try {
    const text = inspect(value, { showProxy: true, maxStringLength: limit });
    return typeof text === 'string' ? text : `<${className(value)}>`;
  } catch (broken) {
    return `<${className(value)}; inspecting it raised ${className(broken)}>`;
  }
}

// {"type", "value"}, or {"type", "repr"} for what JSON cannot express, with "truncated" if over valueMax bytes.
function valueDocument(value, valueMax) {
  const type = quote(className(value));
  const out = new Text(valueMax);
  let text;
  let complete = true;
  try {
    putJson(out, value, 0);
    return `{"type":${type},"value":${out.parts.join('')}}`;
  } catch (problem) {
    complete = !(problem instanceof Full);
    text = complete ? inspected(value, valueMax) : out.parts.join('');
  }
  const [quoted, all] = quoteWithin(text, valueMax);
  return `{"type":${type},"repr":${quoted}${complete && all ? '' : ',"truncated":true'}}`;
}

// The JSON of a value within a limit, or undefined.
function jsonWithin(value, limit) {
  const out = new Text(limit);
  try {
    putJson(out, value, 0);
    return out.parts.join('');
  } catch {
    return undefined;
  }
}

// What a value looks like, as a text of at most so many bytes of JSON.
function inspectedWithin(value, limit) {
  const [quoted, all] = quoteWithin(inspected(value, limit), limit);
  return all ? JSON.parse(quoted) : `${JSON.parse(quoted)} ... (truncated)`;
}

function guarded(read) {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function textOf(value) {
  return typeof value === 'string' ? value : '';
}

// Line and column of the innermost stack frame in a file, or nulls.
function positionIn(stack, filename) {
  for (const line of stack.split('\n')) {
    const match = /^ +at (?:.*\()?(?:async )?(?:file:\/\/)?(.+?):(\d+):(\d+)\)?$/.exec(line);
    if (match !== null && (match[1] === filename || guarded(() => decodeURI(match[1])) === filename))
      return [Number(match[2]), Number(match[3])];
  }
  return [null, null];
}

function tracebackLines(stack) {
  const lines = stack.split('\n');
  const omitted = lines.length - LINES_MAX + 1;
  if (omitted > 1)
    lines.splice(LINES_HEAD, omitted, `  ... ${omitted} lines omitted`);
  const cut = lines.map((line) => wellFormed(line.slice(0, LINE_MAX)));
  while (cut.length > 1 && byteLength(stringify(cut)) > TRACEBACK_BYTES_MAX)
    cut.splice(cut.length >> 1, 1);
  return cut;
}

// The module or variable that was not there.
function missingName(message) {
  const match = /^Cannot find (?:module|package) '([^']+)'/.exec(message) ?? /^(\S+) is not defined$/.exec(message);
  return match === null ? null : match[1].slice(0, LINE_MAX);
}

function errorDocument(error, filename) {
  const isError = guarded(() => types.isNativeError(error) || error instanceof Error) === true;
  const name = guarded(() => error.name);
  const message = isError ? textOf(guarded(() => error.message)) : inspected(error, MESSAGE_MAX);
  const stack = isError ? textOf(guarded(() => error.stack)).slice(0, LINES_MAX * LINE_MAX * 2) : message;
  const errno = guarded(() => error.errno);
  const [line, column] = isError ? positionIn(stack, filename) : [null, null];
  return stringify({
    type: wellFormed(isError && textOf(name) !== '' ? name : className(error)).slice(0, LINE_MAX),
    message: wellFormed(message.slice(0, MESSAGE_MAX)),
    line,
    column,
    module: null,
    errno: Number.isSafeInteger(errno) ? Math.abs(errno) : null,    // Node negates the system's numbers
    name: missingName(message),
    traceback: tracebackLines(stack),
  });
}

module.exports = { errorDocument, inspectedWithin, jsonWithin, valueDocument };
