'use strict';

// Makes a program leave the value of its last expression statement in __caisson__.value, and give access to a top-level
// __return_value__ that it declares.
//
// Node shows lines of the program in its error messages, and positions in stack traces.  So lines stay where they are,
// and wherever possible columns too: `__caisson__.value=` goes at the end of the line before the expression, onto an
// empty one if there is any.  An assignment needs nothing after the expression.

const CAPTURE = ';__caisson__.value=';
const RETURN_NAME = '__return_value__';
const RETURN_GETTER = `\n;__caisson__.returned=()=>${RETURN_NAME};`;

// Endings that need no parser, which takes longer to load and warm up than all else here.  A line that starts at the
// margin and has its own brackets in balance closes nothing that was open before it.
const PRINTING = /^console\.\w+\([^;`]*\);?$/;
const CLOSING = /^[}\s]*$/;
const CALL = /^(?:await )?[A-Za-z_$][\w$.]*(?:\([^()[\]{}`/]*\)(?:\.\w+)*)*;?$/;
const STATEMENT = new RegExp(`^(?:${[
  'break', 'class', 'const', 'continue', 'debugger', 'do', 'else', 'export', 'for', 'function', 'if', 'import', 'let',
  'return', 'switch', 'throw', 'try', 'var', 'while', 'with',
].join('|')})\\b`);
const EXPORTING = /^(?:module\.)?exports\b/;

function insert(code, at, text) {
  return code.slice(0, at) + text + code.slice(at);
}

// Put the capture between the end of a statement and the start of the next, an expression.
function capture(code, end, start) {
  const gap = code.slice(end, start);
  if (/^[^\S\n]*\n[^\S\n]*\n\s*$/.test(gap))
    return insert(code, end + gap.indexOf('\n') + 1, CAPTURE);
  return gap.includes('\n') ? insert(code, end, CAPTURE) : insert(code, start, CAPTURE.slice(1));
}

// The instrumented text, or undefined if it takes a parser to know.
function instrumentAtGlance(code) {
  const end = code.trimEnd().length;
  const start = code.lastIndexOf('\n', end - 1) + 1;
  const line = code.slice(start, end);
  const before = code.slice(0, start).trimEnd();
  if (line === '' || PRINTING.test(line) || CLOSING.test(line))
    return code;
  if (CALL.test(line) && !STATEMENT.test(line) && /[;}]$/.test(before))
    return capture(code, before.length, start);
  return undefined;
}

function instrumentParsed(code, sourceType) {
  let tree;
  try {
    tree = require('acorn').parse(code, {
      ecmaVersion: 'latest',
      sourceType,
      allowReturnOutsideFunction: sourceType === 'script',
      allowHashBang: true,
    });
  } catch {
    return code;        // newer than the parser, or too deep for it
  }
  const [previous, last] = [tree.body.at(-2), tree.body.at(-1)];
  if (last?.type !== 'ExpressionStatement' || EXPORTING.test(code.slice(last.start, last.end)))
    return code;
  const { expression } = last;
  // Of `a, b` the value is b.
  if (expression.type === 'SequenceExpression' && expression.start === last.start)
    return insert(code, expression.expressions.at(-1).start, CAPTURE.slice(1));
  return capture(code, previous?.end ?? last.start, last.start);
}

function instrument(code, sourceType) {
  const instrumented = instrumentAtGlance(code) ?? instrumentParsed(code, sourceType);
  return code.includes(RETURN_NAME) ? instrumented + RETURN_GETTER : instrumented;
}

module.exports = { instrument };
