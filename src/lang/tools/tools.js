'use strict';

// What code in a sandbox may call outside: await tools.weather({ city: 'Oslo' }), or tools.sync.weather({ city: 'Oslo' }).
//
// This is a stub.  It knows the path of a socket and nothing else; what may be called, by whom and how often is decided at
// the other end (src/tools of the engine).  Each call is a connection of its own.

const HEAD = 4;
const READ_SIZE = 1 << 16;
const ASKING_MAX = 32;
const AGAIN_MS = 10;
const TRIES = 500;

class ToolError extends Error {
  constructor(message, tool) {
    super(message);
    this.name = 'ToolError';
    this.tool = tool;
  }
}

function socketPath() {
  return process.env.CAISSON_TOOLS || '/dev/shm/.caisson-tools';
}

function framed(request) {
  const text = Buffer.from(JSON.stringify(request));
  const frame = Buffer.alloc(HEAD + text.length);
  frame.writeUInt32LE(text.length);
  text.copy(frame, HEAD);
  return frame;
}

function unreachable(request, problem) {
  return { ok: false, error: `Tools cannot be reached: ${problem}`, tool: request.tool ?? '' };
}

// Bytes of an answer, as they come.
class Answer {
  constructor() {
    this.pieces = [];
    this.size = 0;
  }

  add(piece) {
    this.pieces.push(Buffer.from(piece));
    this.size += piece.length;
  }

  read(request) {
    const bytes = Buffer.concat(this.pieces);
    if (bytes.length < HEAD || bytes.length < HEAD + bytes.readUInt32LE())
      return unreachable(request, 'the connection was ended');
    const answer = JSON.parse(bytes.toString('utf8', HEAD, HEAD + bytes.readUInt32LE()));
    // A failure names the tool that was asked for, even where the request could not be read at the other end.
    return answer.ok || answer.tool ? answer : { ...answer, tool: request.tool ?? '' };
  }
}

let asking = 0;
const waiting = [];

// Node's connections do not wait where there is no room for one more; so some are open at a time, and others' are tried again.
async function ask(request) {
  const frame = framed(request);
  if (asking >= ASKING_MAX)
    await new Promise((resolve) => waiting.push(resolve));
  asking++;
  try {
    for (;;) {
      const { answer, problem } = await exchange(frame);
      if (answer.size > 0 || problem === null)
        return answer.read(request);
      if (problem !== 'EAGAIN')
        return unreachable(request, problem);
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  } finally {
    asking--;
    waiting.shift()?.();
  }
}

function exchange(frame) {
  return new Promise((resolve) => {
    const socket = require('net').connect(socketPath());
    const answer = new Answer();
    let problem = null;
    socket.on('data', (piece) => answer.add(piece));
    socket.on('error', (error) => {
      problem = error.code ?? error.message;
    });
    // What was refused by its length has an answer all the same.
    socket.on('close', () => resolve({ answer, problem }));
    socket.write(frame);
  });
}

function askSync(request) {
  const frame = framed(request);
  for (let left = TRIES; ; left--) {
    const { answer, problem } = exchangeSync(frame);
    if (answer.size > 0 || problem === null)
      return answer.read(request);
    if (left === 0 || problem !== 'ENOTCONN')
      return unreachable(request, problem);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, AGAIN_MS);
  }
}

// Node connects to such a socket at once, and only tells it later; so its descriptor can be used right away.
function exchangeSync(frame) {
  const fs = require('fs');
  const socket = require('net').connect(socketPath());
  socket.on('error', () => {});
  const answer = new Answer();
  try {
    socket._handle.setBlocking(true);
    const { fd } = socket._handle;
    try {
      for (let at = 0; at < frame.length;)
        at += fs.writeSync(fd, frame, at);
    } catch (error) {
      if (error.code !== 'EPIPE' && error.code !== 'ECONNRESET')
        throw error;
    }
    const piece = Buffer.alloc(READ_SIZE);
    for (let n; (n = fs.readSync(fd, piece)) > 0;)
      answer.add(piece.subarray(0, n));
    return { answer, problem: null };
  } catch (error) {
    return { answer, problem: error.code ?? error.message };
  } finally {
    socket.destroy();
  }
}

function failure({ error, tool }) {
  return { status: 'error', error, tool: tool ?? '' };
}

function infoOf(answer) {
  if (!answer.ok && answer.raise)
    throw new ToolError(answer.error, answer.tool);
  return answer.ok ? answer.result : failure(answer);
}

function resultOf(answer) {
  const result = infoOf(answer);
  return answer.decode ? result : JSON.stringify(result);
}

function callRequest(names, args) {
  if (names.some((name) => typeof name !== 'string') || args === null || typeof args !== 'object' || Array.isArray(args))
    throw new TypeError('a tool takes one object: tools.NAME({ name: value })');
  const [tool, server] = [...names].reverse();
  return { op: 'call', tool, arguments: args, ...(server === undefined ? {} : { server }) };
}

// call('weather', {...}), call('home', 'weather', {...}) or call({ server: 'home', tool: 'weather', arguments: {...} })
function parseCall(given) {
  const last = given.at(-1);
  if (given.length === 1 && typeof last === 'object' && last !== null)
    return callRequest(last.server === undefined ? [last.tool] : [last.server, last.tool], last.arguments ?? {});
  const args = typeof last === 'object' ? last : {};
  return callRequest(given.slice(0, typeof last === 'object' ? -1 : given.length), args);
}

const namesOf = (answer) => (answer.ok ? answer.tools.map(({ name }) => name).sort() : []);

// How an answer comes: as a promise, or at once.
const later = { ask, then: async (answer, use) => use(await answer) };
const now = { ask: askSync, then: (answer, use) => use(answer) };

const asIdentifier = (name) => name.replace(/[^\p{L}\p{N}]/gu, '_');

// The names as their server has them: what JavaScript writes tools.get_time may be get-time there.
function exactNames(names, answer) {
  const [name, server] = [...names].reverse();
  const tools = answer.ok ? answer.tools.filter((one) => server === undefined || asIdentifier(one.server) === asIdentifier(server)) : [];
  const exact = tools.filter(({ tool }) => tool === name);
  const alike = tools.filter(({ tool }) => asIdentifier(tool) === asIdentifier(name));
  if (exact.length === 0 && alike.length === 1)
    return [alike[0].server, alike[0].tool];
  return server !== undefined && exact.length === 1 ? [exact[0].server, exact[0].tool] : names;
}

// Names without _ are exact, and are asked for without a look at the list.
function callNamed(way, names, args) {
  const request = callRequest(names, args);
  if (!names.some((name) => name.includes('_')))
    return way.then(way.ask(request), resultOf);
  return way.then(way.ask({ op: 'list' }), (answer) => way.then(way.ask(callRequest(exactNames(names, answer), args)), resultOf));
}

function isPrivate(name) {
  return typeof name !== 'string' || name.startsWith('_') || name === 'then' || name === 'toJSON';
}

// A tool, or a server whose tools are its properties; which of them, its use tells.
function toolOf(way, names) {
  return new Proxy(() => {}, {
    apply: (_target, _self, [args = {}]) => callNamed(way, names, args),
    get: (_target, name) => {
      if (name === Symbol.toPrimitive)
        return () => `<tool ${names.join('.')}>`;
      return isPrivate(name) ? undefined : toolOf(way, [names.at(-1), name]);
    },
  });
}

function toolsOf(way, more) {
  const own = {
    call: (...given) => way.then(way.ask(parseCall(given)), resultOf),
    listTools: () => way.then(way.ask({ op: 'list' }), namesOf),
    getToolInfo: (tool) => way.then(way.ask({ op: 'info', tool }), infoOf),
    ToolError,
    ...more,
  };
  own.list_tools = own.listTools;
  own.get_tool_info = own.getToolInfo;
  own[Symbol.toPrimitive] = () => {
    const names = namesOf(askSync({ op: 'list' }));
    return `<tools: ${names.length}: ${names.slice(0, 5).join(', ')}${names.length > 5 ? ', ...' : ''}>`;
  };
  own[Symbol.for('nodejs.util.inspect.custom')] = own[Symbol.toPrimitive];
  return new Proxy(own, {
    get: (target, name) => (Object.hasOwn(target, name) ? target[name] : isPrivate(name) ? undefined : toolOf(way, [name])),
    set: () => false,
    defineProperty: () => false,
    deleteProperty: () => false,
  });
}

module.exports = toolsOf(later, { sync: toolsOf(now, {}) });
