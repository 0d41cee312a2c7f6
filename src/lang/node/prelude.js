'use strict';

// Runs the prelude: code before the program, whose functions, classes and variables the program finds.
//
// A program of Node is the body of a function or a module, so two of them share no declarations.  The prelude is a
// script of the global scope instead: what it declares is visible to all code that comes later.

const channel = require('./channel.js');
const { errorDocument } = require('./report.js');
const fs = require('fs');
const Module = require('module');
const path = require('path');
const { pathToFileURL } = require('url');
const { inspect } = require('util');
const vm = require('vm');

const OUR_FRAMES = /^ +at (?:Script\.runInThisContext|run\b.*prelude\.js)/m;

// Global, because functions of the prelude use them later; a program has its own in front of these.
function exposeRequire(main) {
  const values = { require: Module.createRequire(main.filename), __filename: main.filename, __dirname: main.path };
  for (const [name, value] of Object.entries(values))
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
}

function compile(file, source, typescript) {
  const program = typescript ? require('./typescript.js').strip(source, file) : { code: source, sourceMap: '' };
  const importModuleDynamically = (name) => import(/^\.{1,2}\//.test(name)
    ? pathToFileURL(path.resolve(path.dirname(file), name)).href
    : name);
  return new vm.Script(program.code + program.sourceMap, { filename: file, importModuleDynamically });
}

function tell(document, text) {
  channel.send(channel.kinds.ERROR, `${document.slice(0, -1)},"prelude":true}`);
  process.stderr.write(`${text}\n\nNode.js ${process.version}\n`);
  process.exit(1);
}

function refuse(error, file, source, typescript) {
  const { describe, describeTypeScript } = require('./syntax.js');
  const ours = typescript && !(error instanceof SyntaxError);
  const { document, text } = (ours ? describeTypeScript : describe)(error, file, source);
  tell(JSON.stringify(document), text);
}

function fail(error, file) {
  if (error instanceof Error && typeof error.stack === 'string') {
    const at = error.stack.search(OUR_FRAMES);
    if (at > 0)
      error.stack = error.stack.slice(0, at).trimEnd();
  }
  tell(errorDocument(error, file), `Uncaught ${inspect(error)}`);
}

// Whether the program may begin.
function run(file, main, typescript) {
  const source = fs.readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  let script;
  try {
    script = compile(file, source, typescript);
  } catch (error) {
    refuse(error, file, source, typescript);
    return false;
  }
  exposeRequire(main);
  try {
    script.runInThisContext({ displayErrors: false });
  } catch (error) {
    fail(error, file);
    return false;
  }
  return true;
}

module.exports = { run };
