'use strict';

// The sending end of the private channel.  Sending never fails: a lost channel must not change what a program does.
//
// Node has no dup(), so the descriptor stays where the engine put it; libuv has already marked it close-on-exec.

const { Buffer } = require('buffer');      // programs may delete the global
const { fstatSync, writeSync } = require('fs');

const CHANNEL_FD = 3;
const FRAME_MAX = 65536;
const HEADER_SIZE = 12;
const FLAG_MORE = 1;

const kinds = { HELLO: 1, SYNTAX: 2, STARTED: 3, ERROR: 4, VALUE: 5, DONE: 6, LEFT: 7 };

const identity = identify();
let target = CHANNEL_FD;

function identify() {
  try {
    const about = fstatSync(CHANNEL_FD);
    return about.isSocket() ? `${about.dev}:${about.ino}` : null;
  } catch {
    return null;
  }
}

function framesOf(kind, text) {
  const payload = Buffer.from(text);
  const room = FRAME_MAX - HEADER_SIZE;
  const frames = [];
  for (let start = 0; start === 0 || start < payload.length; start += room) {
    const piece = payload.subarray(start, start + room);
    const header = Buffer.alloc(HEADER_SIZE);
    header.write('CSN1', 'latin1');
    header[4] = kind;
    header[5] = start + room < payload.length ? FLAG_MORE : 0;
    header.writeUInt32LE(piece.length, 8);
    frames[frames.length] = Buffer.concat([header, piece]);
  }
  return frames;
}

function send(kind, text = '') {
  // A program may have closed our descriptor and got the same number for a file of its own.
  if (identity === null || identify() !== identity)
    return;
  try {
    for (const frame of framesOf(kind, text))
      writeSync(target, frame);
  } catch {
    // The engine is gone, or the program filled the channel; neither is the program's business.
  }
}

// What a worker sends before it has its program goes to another descriptor; without one, to the channel again.
function divert(fd = CHANNEL_FD) {
  target = fd;
}

module.exports = { divert, kinds, send };
