'use strict';

// Leaves our frames out of the stack traces of a context's programs, which run below calls of ours.
//
// V8 has a stack formatted by Error.prepareStackTrace, where there is one.  A program that sets its own has it called with
// the frames that are not ours.

const { apply } = Reflect;
const { defineProperty } = Object;
const { toString } = Error.prototype;

const OURS = `${__dirname}/`;

function fileOf(site) {
  return site.getFileName() ?? '';
}

function isOurs(site) {
  return site !== undefined && fileOf(site).startsWith(OURS);
}

// A frame of Node's vm is a call of ours unless a frame of the program is below it.
function isShown(site, index, trace) {
  if (fileOf(site) !== 'node:vm')
    return !isOurs(site);
  return trace.slice(index + 1).some((below) => fileOf(below) !== 'node:vm' && !isOurs(below) && !fileOf(below).startsWith('node:'));
}

function format(error, trace) {
  const lines = trace.filter(isShown).map((site) => `\n    at ${site}`);
  return `${apply(toString, error, [])}${lines.join('')}`;
}

function hideFrames() {
  let own;              // the program's
  const prepare = (error, trace) => {
    if (typeof own === 'function')
      return apply(own, Error, [error, trace.filter(isShown)]);
    return format(error, trace);
  };
  defineProperty(Error, 'prepareStackTrace', {
    configurable: true,
    get() {
      // With source maps Node has its own.
      return process.sourceMapsEnabled === true ? own : prepare;
    },
    set(value) {
      own = value === prepare ? undefined : value;
    },
  });
}

module.exports = { hideFrames };
