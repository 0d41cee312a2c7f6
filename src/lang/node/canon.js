'use strict';

// What a function of a program's returned or threw, as text: the canonical form (docs/protocols/grading-roles.md), names of
// types, and words for people.
//
// Nothing here calls what a program made, not its getters, its toJSON() or the traps of a proxy, and nothing depends on
// what it may have changed in the library; only words for people may.  All text is ASCII.

const { Buffer } = require('buffer');
const { inspect, types } = require('util');
const { uncurry } = require('./primordials.js');

const BYTES_MAX = 8 << 20;
const DEPTH_MAX = 1000;
const HOPS_MAX = 100;
const NAME_MAX = 200;
const MESSAGE_MAX = 2000;
const HEX = '0123456789abcdef';
const ESCAPES = { __proto__: null, 8: '\\b', 9: '\\t', 10: '\\n', 12: '\\f', 13: '\\r', 34: '\\"', 92: '\\\\' };
const NOT_CANONICAL = { __proto__: null };

const { isArray } = Array;
const { getOwnPropertyDescriptor, getOwnPropertySymbols, getPrototypeOf, hasOwn, keys } = Object;
const { isFinite, isSafeInteger } = Number;
const { isArgumentsObject, isDate, isGeneratorObject, isMap, isNativeError, isProxy, isSet, isUint8Array } = types;
const { prototype: arrays } = Array;
const { prototype: buffers } = Buffer;
const { prototype: bytes } = Uint8Array;
const { prototype: dates } = Date;
const { prototype: objects } = Object;
const { prototype: maps } = Map;
const { prototype: sets } = Set;
const { toStringTag } = Symbol;
const SavedMap = Map;
const ErrorClass = Error;
const { prepareStackTrace } = Error;
const base64 = uncurry(buffers.base64Slice);
const byteLength = uncurry(getOwnPropertyDescriptor(getPrototypeOf(bytes), 'byteLength').get);
const charCodeAt = uncurry(String.prototype.charCodeAt);
const digits = uncurry(BigInt.prototype.toString);
const getTime = uncurry(dates.getTime);
const indexOf = uncurry(String.prototype.indexOf);
const isEnumerable = uncurry(objects.propertyIsEnumerable);
const mapForEach = uncurry(maps.forEach);
const mapGet = uncurry(maps.get);
const mapSet = uncurry(maps.set);
const setForEach = uncurry(sets.forEach);
const slice = uncurry(String.prototype.slice);

// ---- texts

function escaped(code) {
  return ESCAPES[code] ?? `\\u${HEX[code >> 12]}${HEX[code >> 8 & 15]}${HEX[code >> 4 & 15]}${HEX[code & 15]}`;
}

function quote(text) {
  let out = '"';
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const code = charCodeAt(text, i);
    if (code >= 32 && code < 127 && code !== 34 && code !== 92)
      continue;
    out += slice(text, from, i) + escaped(code);
    from = i + 1;
  }
  return `${out}${slice(text, from)}"`;
}

// ---- types

// What a value is in the canonical form, or undefined for an object that has none.  Subclasses are objects of their own.
function kindOf(object) {
  if (isProxy(object) || typeof object === 'function')
    return undefined;
  const prototype = getPrototypeOf(object);
  if (isArray(object))
    return prototype === arrays ? 'list' : undefined;
  if (isMap(object))
    return prototype === maps ? 'map' : undefined;
  if (isSet(object))
    return prototype === sets ? 'set' : undefined;
  if (isDate(object))
    return prototype === dates ? 'js.Date' : undefined;
  if (isUint8Array(object))
    return prototype === bytes || prototype === buffers ? 'bytes' : undefined;
  const isPlain = (prototype === objects || prototype === null) && !isArgumentsObject(object) && !isNativeError(object);
  return isPlain ? 'dict' : undefined;
}

function dataProperty(object, key) {
  const property = getOwnPropertyDescriptor(object, key);
  return property !== undefined && hasOwn(property, 'value') ? property.value : undefined;
}

// The name that a prototype goes by: its constructor's, or its tag (generators have no constructor that is a function).
function nameOf(prototype) {
  const constructor = dataProperty(prototype, 'constructor');
  const name = typeof constructor === 'function' && !isProxy(constructor) ? dataProperty(constructor, 'name')
    : dataProperty(prototype, toStringTag);
  return typeof name === 'string' && name !== '' ? slice(name, 0, NAME_MAX) : undefined;
}

// Of primitives the names; of a number those that Python has for it too, since expectations are written with them.
function primitiveNames(value) {
  switch (typeof value) {
  case 'string':
    return ['string', 'str'];
  case 'boolean':
    return ['boolean', 'bool'];
  case 'bigint':
    return ['bigint', 'int'];
  case 'number':
    return isSafeInteger(value) ? ['number', 'int', 'float'] : ['number', 'float'];
  default:
    return value === null ? ['null', 'NoneType'] : [typeof value];
  }
}

function listOf(names) {
  let out = '';
  for (let i = 0; i < names.length; i++)
    out += `${i > 0 ? ',' : ''}${quote(names[i])}`;
  return `[${out}]`;
}

const PYTHON_NAMES = { __proto__: null, list: 'list', dict: 'dict', set: 'set', bytes: 'bytes' };

// {type, mro}: the name of a value's class, and the JSON list of the names up the chain of prototypes.
function typesOf(value) {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) {
    const names = primitiveNames(value);
    return { type: names[0], mro: listOf(names) };
  }
  let type;
  let mro = '';
  let object = value;
  for (let hops = 0; object !== null && hops < HOPS_MAX; hops++) {
    if (isProxy(object)) {
      type ??= 'Proxy';
      mro += `${mro === '' ? '' : ','}"Proxy"`;
      break;
    }
    const name = hops > 0 ? nameOf(object) : undefined;
    if (name !== undefined) {
      type ??= name;
      mro += `${mro === '' ? '' : ','}${quote(name)}`;
    }
    object = getPrototypeOf(object);
  }
  if (typeof value === 'function' && !isProxy(value))
    type = 'function';
  const python = PYTHON_NAMES[kindOf(value)];
  if (python !== undefined)
    mro += `${mro === '' ? '' : ','}${quote(python)}`;
  return { type: type ?? 'Object', mro: `[${mro}]` };
}

// ---- the canonical form

function put(state, text) {
  state.out += text;
  if (state.out.length > BYTES_MAX)
    throw NOT_CANONICAL;
}

function putNumber(state, value) {
  if (isSafeInteger(value)) {
    put(state, `${value}`);             // -0 is 0 here
  } else if (isFinite(value)) {
    const text = `${value}`;
    put(state, indexOf(text, '.') < 0 && indexOf(text, 'e') < 0 ? `${text}.0` : text);
  } else {
    const text = value > 0 ? 'inf' : '-inf';
    put(state, `{"t":"float","v":"${value === value ? text : 'nan'}"}`);
  }
}

function putString(state, value) {
  // So that no copy is much larger than the room there is.
  if (value.length > BYTES_MAX)
    throw NOT_CANONICAL;
  put(state, quote(value));
}

function putValue(state, value, depth) {
  switch (typeof value) {
  case 'string':
    putString(state, value);
    return;
  case 'number':
    putNumber(state, value);
    return;
  case 'boolean':
    put(state, value ? 'true' : 'false');
    return;
  case 'bigint':
    put(state, `{"t":"bigint","v":"${digits(value)}"}`);
    return;
  case 'undefined':
    put(state, '{"t":"undefined"}');
    return;
  case 'object':
    if (value === null)
      put(state, 'null');
    else
      putObject(state, value, depth);
    return;
  default:
    throw NOT_CANONICAL;
  }
}

function putObject(state, value, depth) {
  const kind = kindOf(value);
  switch (kind) {
  case undefined:
    throw NOT_CANONICAL;
  case 'js.Date':
    put(state, '{"t":"js.Date","v":');
    putNumber(state, getTime(value));
    put(state, '}');
    return;
  case 'bytes':
    if (byteLength(value) > BYTES_MAX)
      throw NOT_CANONICAL;
    put(state, `{"t":"bytes","v":"${base64(value, 0, byteLength(value))}"}`);
    return;
  }
  const number = mapGet(state.begun, value);
  if (number !== undefined) {
    put(state, `{"t":"ref","v":${number}}`);
    return;
  }
  if (depth === DEPTH_MAX)
    throw NOT_CANONICAL;
  mapSet(state.begun, value, state.count);
  state.count++;
  put(state, kind === 'list' ? '[' : `{"t":"${kind}","v":[`);
  putElements[kind](state, value, depth + 1);
  put(state, kind === 'list' ? ']' : ']}');
}

const putElements = {
  __proto__: null,

  list(state, array, depth) {
    for (let i = 0; i < array.length; i++) {
      if (i > 0)
        put(state, ',');
      const property = getOwnPropertyDescriptor(array, i);
      if (property !== undefined && !hasOwn(property, 'value'))
        throw NOT_CANONICAL;
      putValue(state, property === undefined ? undefined : property.value, depth);
    }
  },

  dict(state, object, depth) {
    const symbols = getOwnPropertySymbols(object);
    for (let i = 0; i < symbols.length; i++) {
      if (isEnumerable(object, symbols[i]))
        throw NOT_CANONICAL;
    }
    const names = keys(object);
    for (let i = 0; i < names.length; i++) {
      const property = getOwnPropertyDescriptor(object, names[i]);
      if (!hasOwn(property, 'value'))
        throw NOT_CANONICAL;
      putPair(state, names[i], property.value, depth, i > 0);
    }
  },

  map(state, map, depth) {
    let further = false;
    mapForEach(map, (value, key) => {
      putPair(state, key, value, depth, further);
      further = true;
    });
  },

  set(state, set, depth) {
    let further = false;
    setForEach(set, (value) => {
      if (further)
        put(state, ',');
      putValue(state, value, depth);
      further = true;
    });
  },
};

function putPair(state, key, value, depth, further) {
  put(state, further ? ',[' : '[');
  putValue(state, key, depth);
  put(state, ',');
  putValue(state, value, depth);
  put(state, ']');
}

// The text of a value in canonical form, or null.
function canonical(value) {
  const state = { out: '', begun: new SavedMap(), count: 0 };
  try {
    putValue(state, value, 0);
    return state.out;
  } catch {
    return null;
  }
}

// ---- words for people

// May be slow, and fail.
function repr(value) {
  return slice(inspect(value, { customInspect: false, showProxy: true, maxStringLength: MESSAGE_MAX }), 0, MESSAGE_MAX);
}

// A property that an object or its class has, if it is a text and no getter.
function textProperty(value, key) {
  let object = value;
  for (let hops = 0; object !== null && hops < HOPS_MAX && !isProxy(object); hops++) {
    if (hasOwn(object, key)) {
      const text = dataProperty(object, key);
      return typeof text === 'string' ? text : '';
    }
    object = getPrototypeOf(object);
  }
  return '';
}

function messageOf(error) {
  if (typeof error === 'string')
    return slice(error, 0, MESSAGE_MAX);
  return isNativeError(error) ? slice(textProperty(error, 'message'), 0, MESSAGE_MAX) : repr(error);
}

// The number that begins at a place of a text.
function numberAt(text, at) {
  let number = 0;
  for (let i = at; i < text.length && i < at + 9; i++) {
    const digit = charCodeAt(text, i) - 48;
    if (digit < 0 || digit > 9)
      break;
    number = number * 10 + digit;
  }
  return number;
}

// The line of the innermost stack frame in a file, or null.  A program that formats stacks itself is not asked to.
function lineIn(error, filename) {
  if (!isNativeError(error) || dataProperty(ErrorClass, 'prepareStackTrace') !== prepareStackTrace)
    return null;
  const stack = textProperty(error, 'stack');
  for (let at = indexOf(stack, '\n    at '); at >= 0;) {
    const end = indexOf(stack, '\n', at + 1);
    const frame = slice(stack, at, end < 0 ? stack.length : end);
    const place = indexOf(frame, `${filename}:`);
    if (place >= 0)
      return numberAt(frame, place + filename.length + 1);
    at = end;
  }
  return null;
}

module.exports = { canonical, lineIn, messageOf, quote, repr, typesOf };
