'use strict';

// Our end of the private channel.  Sending never fails: a lost channel must not change what a program does.
//
// Node has no dup(), so the descriptor stays where the engine put it; libuv has already marked it close-on-exec.

const { Buffer } = require('buffer');      // programs may delete the global
const { constants, fstatSync, readSync, writeSync } = require('fs');
const { uncurry } = require('./primordials.js');

const CHANNEL_FD = 3;
const FRAME_MAX = 65536;
const HEADER_SIZE = 12;
const FLAG_MORE = 1;

const kinds = { HELLO: 1, SYNTAX: 2, STARTED: 3, ERROR: 4, VALUE: 5, DONE: 6, EXITING: 7, DISPLAY: 8, EXECUTE: 9, MESSAGE: 10 };

const { S_IFMT, S_IFSOCK } = constants;
const { alloc, byteLength } = Buffer;
const copy = uncurry(Buffer.prototype.copy);
const latin1Write = uncurry(Buffer.prototype.latin1Write);
const utf8Write = uncurry(Buffer.prototype.utf8Write);
const writeUInt32LE = uncurry(Buffer.prototype.writeUInt32LE);

const identity = identify();
let target = CHANNEL_FD;

function identify() {
  try {
    const about = fstatSync(CHANNEL_FD);
    return (about.mode & S_IFMT) === S_IFSOCK ? `${about.dev}:${about.ino}` : null;
  } catch {
    return null;
  }
}

function sendFrames(kind, payload) {
  const room = FRAME_MAX - HEADER_SIZE;
  const { length } = payload;
  for (let start = 0; start === 0 || start < length; start += room) {
    const more = start + room < length;
    const size = more ? room : length - start;
    const frame = alloc(HEADER_SIZE + size);
    latin1Write(frame, 'CSN1', 0, 4);
    frame[4] = kind;
    frame[5] = more ? FLAG_MORE : 0;
    writeUInt32LE(frame, size, 8);
    copy(payload, frame, HEADER_SIZE, start, start + size);
    writeSync(target, frame);
  }
}

function send(kind, text = '') {
  // A program may have closed our descriptor and got the same number for a file of its own.
  if (identity === null || identify() !== identity)
    return;
  try {
    const size = byteLength(text);
    const payload = alloc(size);
    utf8Write(payload, text, 0, size);
    sendFrames(kind, payload);
  } catch {
    // The engine is gone, or the program filled the channel; neither is the program's business.
  }
}

// What a packet from the engine carries, {piece, more}, or null for what is no frame of that kind.
function open(packet, kind) {
  if (packet.length < HEADER_SIZE || packet.length > FRAME_MAX || packet.toString('latin1', 0, 4) !== 'CSN1'
      || packet[4] !== kind || packet[5] > FLAG_MORE || packet[6] !== 0 || packet[7] !== 0
      || packet.readUInt32LE(8) !== packet.length - HEADER_SIZE)
    return null;
  return { piece: packet.subarray(HEADER_SIZE), more: packet[5] === FLAG_MORE };
}

// Blocks for one document of the engine's.  Null at the end of file; throws for what is no frame of that kind.  For the
// time before a program is there.
function receive(kind) {
  const packet = Buffer.alloc(FRAME_MAX + 1);
  const pieces = [];
  for (;;) {
    let length;
    try {
      length = readSync(CHANNEL_FD, packet);
    } catch (error) {
      if (error.code !== 'EINTR')
        return null;
      continue;
    }
    if (length === 0)
      return null;
    const frame = open(packet.subarray(0, length), kind);
    if (frame === null)
      throw new TypeError('a frame has a wrong header');
    pieces.push(Buffer.from(frame.piece));
    if (!frame.more)
      return Buffer.concat(pieces).toString();
  }
}

// What a worker sends before it has its program goes to another descriptor; without one, to the channel again.
function divert(fd = CHANNEL_FD) {
  target = fd;
}

function isThere() {
  return identity !== null;
}

module.exports = { CHANNEL_FD, FRAME_MAX, HEADER_SIZE, divert, isThere, kinds, open, receive, send };
