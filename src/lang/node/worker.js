'use strict';

// Waiting for a program: `node run.js --wait` is ready before anybody knows what it will run
// (docs/protocols/runner-channel.md).
//
// What costs time in a short program is code that V8 has not compiled yet: Node's own for console.log, pipes and
// modules, and ours.  So a worker goes through as much of it as leaves no trace.  The engine's socket is a stream of
// Node's like the program's standard output, so writing and reading it prepares that too.

const { Console } = require('console');
const fs = require('fs');
const net = require('net');
const path = require('path');
const util = require('util');
const v8 = require('v8');

const { announce } = require('./exit_watch.js');

const GO_FD = 4;
const MALFORMED_EXIT = 70;
const COLLECTIONS = 2;
const ROUNDS = 2;       // the first compiles, the second teaches V8 which types to expect

// Of a text whose fields each end with a NUL: count and arguments, count and variables.  Null if it is no such text.
function parse(text) {
  const fields = text.split('\0');
  if (fields.pop() !== '')
    return null;
  const take = () => {
    const count = fields.shift();
    return /^\d+$/.test(count) && Number(count) <= fields.length ? fields.splice(0, Number(count)) : null;
  };
  const args = take();
  const env = args && take();
  return env !== null && fields.length === 0 && args.length >= 2 ? { args, env } : null;
}

// Names come in the order of the document, as they would had the interpreter been started with it.  What is in its
// place stays untouched: without TZ for a moment, ICU would compare /etc/localtime with every file that it knows of.
function setEnvironment(present, entries) {
  const wanted = entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]);
  let same = 0;
  for (; same < wanted.length && same < present.length && wanted[same][0] === present[same][0]; same++) {
    if (wanted[same][1] !== present[same][1])
      process.env[wanted[same][0]] = wanted[same][1];
  }
  for (const [name] of present.slice(same))
    delete process.env[name];
  for (const [name, value] of wanted.slice(same))
    process.env[name] = value;
}

// What most programs do, up to the handle, which gets a function of ours for the time.  The first console.log of a
// process looks whether standard error has colours; what it gets to see here is a stream that has none, because opening
// the real one would show in the program.
function rehearsePrinting(stream) {
  const stderr = Object.getOwnPropertyDescriptor(process, 'stderr');
  Object.defineProperty(process, 'stderr', { value: stream, configurable: true });
  stream._handle.writeUtf8String = () => 0;
  const console = new Console(stream);
  console.log(1);
  console.log('%s', 'text', { a: [1, 'x', null] }, true);
  util.inspect(new Map([[1, new Error('x')]]));
  process._tickCallback();
  delete stream._handle.writeUtf8String;
  Object.defineProperty(process, 'stderr', stderr);
}

function youngBytes() {
  return v8.getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_used_size;
}

// A program that allocates little should not pay for what we allocated: let the collector run now, and once more for
// what it then still thinks of as young.
function collectGarbage() {
  for (let i = 0; i < COLLECTIONS; i++) {
    for (let last = 0, bytes = youngBytes(); bytes >= last; bytes = youngBytes()) {
      last = bytes;
      Array.from({ length: 1000 });
    }
  }
}

function rehearse(run, stream, environment) {
  const file = path.join(__dirname, 'warmup_program.js');
  const sink = fs.openSync('/dev/null', 'w');
  for (let i = 0; i < ROUNDS; i++) {
    const source = fs.openSync(file);
    readAll(source);
    fs.closeSync(source);
    parse('2\0\0main.js\x001\0A=b\0');
    const entries = environment.map((entry) => entry.join('='));
    setEnvironment(environment, [...entries, 'CAISSON_REHEARSAL=1']);
    setEnvironment([...environment, ['CAISSON_REHEARSAL', '1']], entries);
    run(file, sink);
    rehearsePrinting(stream);
  }
  fs.closeSync(sink);
  collectGarbage();
}

// Everything until end of file.  Node has no other way to sleep on a descriptor without running its event loop, which
// the program has to find as if it had never run.
function readAll(fd) {
  const chunks = [];
  const buffer = Buffer.allocUnsafeSlow(65536);
  for (;;) {
    const length = fs.readSync(fd, buffer);
    if (length === 0)
      return Buffer.concat(chunks).toString();
    chunks.push(Buffer.from(buffer.subarray(0, length)));
  }
}

function wait(rehearseRun, run) {
  // As process.stdout is made for a pipe.
  const socket = new net.Socket({ fd: GO_FD, readable: false, writable: true });
  const { _handle: handle } = socket;
  handle.setBlocking(true);
  handle.unref();         // or it would be listed among the program's until the event loop has run
  const environment = Object.entries(process.env);
  rehearse(rehearseRun, socket, environment);
  fs.writeSync(GO_FD, 'R');
  const text = readAll(GO_FD);
  handle.close();
  if (text === '')
    return;
  const program = parse(text);
  if (program === null) {
    process.stderr.write('run.js: what came over descriptor 4 is no program\n');
    process.exitCode = MALFORMED_EXIT;
    return;
  }
  setEnvironment(environment, program.env);
  announce();
  run(program.args);
}

module.exports = { wait };
