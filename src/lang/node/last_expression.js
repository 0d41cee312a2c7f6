'use strict';

// Makes a program leave the value of its last expression statement in __caisson__.value, and give access to a top-level
// __return_value__ that it declares.
//
// Node shows lines of the program in its error messages, and positions in stack traces.  The assignment goes where neither
// can show it: on a line of its own before the first line (`lines` then says by how many lines the program moved), or on a
// blank or comment line before the expression.  A program without such a line gets the assignment at the end of the line
// before, or, where there is none, before the expression.
//
// V8 gives an unknown name the position of its statement, which is now that of the assignment.  `edit` says where the
// assignment is and where the statement begins, and exit_watch.js corrects what is said of an uncaught error.

const acorn = require('acorn');

const ASSIGNMENT = '__caisson__.value=';
const RETURN_NAME = '__return_value__';
const RETURN_GETTER = `\n;__caisson__.returned=()=>${RETURN_NAME};`;
const EXPORTING = /^(?:module\.)?exports\b/;
const LINE_END = /\r\n|[\n\r\u2028\u2029]/g;

function lineOf(code, at) {
  return (code.slice(0, at).match(LINE_END) ?? []).length + 1;
}

// The line of a place, from 1, and its column, from 0.
function positionOf(code, at) {
  const before = code.slice(0, at);
  const start = Math.max(...['\n', '\r', '\u2028', '\u2029'].map((end) => before.lastIndexOf(end))) + 1;
  return { line: lineOf(code, at), column: at - start };
}

// The beginning of a line between two places that holds no code and is in no block comment, or -1.
function emptyLine(code, from, to, comments) {
  const gap = code.slice(from, to);
  const starts = [...gap.matchAll(LINE_END)].map((match) => from + match.index + match[0].length);
  if (from === 0 && !code.startsWith('#!'))
    starts.unshift(0);
  // The last of these lines is the expression's own.
  return starts.slice(0, -1).find((at) => !comments.some(({ start, end }) => start < at && at < end)) ?? -1;
}

// Does printing to the console end the program?  Its value is undefined.
function prints({ type, callee }) {
  return type === 'CallExpression' && callee.type === 'MemberExpression' && callee.object.name === 'console';
}

// Where the assignment goes, and with which text.
function placeOf(code, from, start, comments) {
  const free = emptyLine(code, from, start, comments);
  if (free >= 0)
    return { at: free, text: `;${ASSIGNMENT}` };
  if (from > 0 && code.slice(from, start).search(LINE_END) >= 0)
    return { at: from, text: `;${ASSIGNMENT}` };
  return { at: start, text: ASSIGNMENT };
}

// Where V8 sees an operand of a comma expression.
function placeOfOperand(code, { type, start, left, operator, callee, object, property, computed }) {
  if (type === 'CallExpression' && callee.type === 'MemberExpression')
    return placeOfOperand(code, callee);
  if (type === 'MemberExpression')
    return computed ? code.indexOf('[', object.end) : property.start;
  return left !== undefined && operator !== undefined ? code.indexOf(operator, left.end) : start;
}

function capture(code, tree, comments, canMove) {
  const [previous, last] = [tree.body.at(-2), tree.body.at(-1)];
  const { expression } = last;
  let { start } = last;
  let from = previous?.end ?? 0;
  let seen = start;
  // Of `a, b` the value is b.
  if (expression.type === 'SequenceExpression' && expression.start === start) {
    const value = expression.expressions.at(-1);
    from = start = value.start;
    seen = placeOfOperand(code, value);
  }
  const statement = { ...positionOf(code, seen), text: '' };
  statement.text = code.split(LINE_END, statement.line)[statement.line - 1];
  const { at, text } = placeOf(code, from, start, comments);
  if (at === last.start && previous === undefined && canMove && !code.startsWith('#!'))
    return { code: `${ASSIGNMENT}\n${code}`, lines: 1, edit: { line: 0, column: 0, length: ASSIGNMENT.length, text: '', statement } };
  // An assertion reads its words in the file, at its column, and has no value.
  if (at === start && /\bassert\b/.test(code.slice(last.start, last.end)))
    return { code, lines: 0, edit: null };
  const place = positionOf(code, at);
  const edit = { ...place, length: text.length, text: code.split(LINE_END, place.line)[place.line - 1], statement };
  return { code: code.slice(0, at) + text + code.slice(at), lines: 0, edit };
}

function hasValue(code, tree) {
  const last = tree.body.at(-1);
  return last?.type === 'ExpressionStatement' && !prints(last.expression) && !EXPORTING.test(code.slice(last.start, last.end));
}

// {code, lines, edit}.  The program stays as it is where the parser does not know it.
function instrument(code, sourceType, canMove = false) {
  const comments = [];
  let result = { code, lines: 0, edit: null };
  try {
    const tree = acorn.parse(code, {
      ecmaVersion: 'latest',
      sourceType,
      allowReturnOutsideFunction: sourceType === 'script',
      allowHashBang: true,
      onComment: (block, text, start, end) => comments.push({ start, end }),
    });
    if (hasValue(code, tree))
      result = capture(code, tree, comments, canMove);
  } catch {
    // Newer than the parser, or too deep for it.
  }
  if (code.includes(RETURN_NAME))
    result.code += RETURN_GETTER;
  return result;
}

module.exports = { instrument };
