'use strict';

// What is wrong with a program's text: the document for the engine, and the text that Node would print.

const TEXT_MAX = 1000;
const MESSAGE_MAX = 4000;

function document(type, message, line, column, text) {
  return {
    type: String(type).slice(0, TEXT_MAX),
    message: String(message).slice(0, MESSAGE_MAX),
    line,
    column,
    text: text === null ? null : text.replace(/\r$/, '').slice(0, TEXT_MAX),
  };
}

// Where a parser that is not V8 sees the mistake; lines from 1, columns from 0.
function parsedPosition(code) {
  try {
    require('acorn').parse(code, { ecmaVersion: 'latest', sourceType: 'module', allowHashBang: true });
  } catch (error) {
    if (error.loc !== undefined)
      return error.loc;
  }
  return { line: null, column: null };
}

function lineOf(code, line) {
  return line === null ? null : code.split('\n', line)[line - 1] ?? null;
}

function rendered(filename, line, column, text, type, message) {
  const place = line === null ? '' : `${filename}:${line}\n${text}\n${' '.repeat(column - 1)}^\n\n`;
  return `${place}${type}: ${message}`;
}

// V8 puts the position of a mistake in a script before the error's stack: "FILE:LINE", the line, and below it carets
// (but not for long lines).  What follows the message is frames of ours.  For modules it keeps the position to itself.
function describe(error, filename, code) {
  const stack = String(error.stack);
  const match = /^(.*):(\d+)\n.*\n(?:( *)\^+\n)?/.exec(stack);
  if (match !== null && match[1] === filename) {
    const line = Number(match[2]);
    const column = match[3] === undefined ? null : match[3].length + 1;
    return {
      document: document(error.name, error.message, line, column, lineOf(code, line)),
      text: stack.replace(/(?:\n {4}at .*)+$/, ''),
    };
  }
  const { line, column: offset } = parsedPosition(code);
  const column = line === null ? null : offset + 1;
  const text = lineOf(code, line);
  return {
    document: document(error.name, error.message, line, column, text),
    text: rendered(filename, line, column, text, error.name, error.message),
  };
}

// The stripper throws a plain object, or fails as WebAssembly does when a text is nested too deeply.
function describeTypeScript(error, filename, code) {
  const line = error?.startLine ?? null;
  const column = line === null ? null : error.startColumn + 1;
  const text = lineOf(code, line);
  const type = line === null && error instanceof Error ? error.name : 'SyntaxError';
  const message = error?.message ?? String(error);
  return {
    document: document(type, message, line, column, text),
    text: rendered(filename, line, column, text, type, message),
  };
}

module.exports = { describe, describeTypeScript };
