'use strict';

// Hooks for Node's ES module loader: the main file is loaded from a text that we prepared, modules of the request are
// found, and TypeScript files are stripped.  They run in the program's thread where Node offers that, and in the loader's own thread elsewhere.

const fs = require('fs');
const path = require('path');
const { isBuiltin } = require('module');
const { fileURLToPath, pathToFileURL } = require('url');

let main = { url: '', source: '' };
let typescript = false;
let modules = null;         // the folder of a request's modules, or null

function initialize(settings) {
  ({ main, typescript, modules } = settings);
}

// Node's loader of ES modules does not look into NODE_PATH, as require() does.
function moduleFile(specifier) {
  if (modules === null || /^[./]|^\w+:/.test(specifier) || isBuiltin(specifier))
    return undefined;
  const file = path.join(modules, specifier);
  const isFile = (name) => fs.statSync(name, { throwIfNoEntry: false })?.isFile() === true;
  return ['', '.mjs', '.js', '.cjs', '/index.mjs', '/index.js'].map((end) => `${file}${end}`).find(isFile);
}

// As compilers do: './x' and './x.js' may mean x.ts.
function resolve(specifier, context, nextResolve) {
  if (typescript && /^\.{1,2}\//.test(specifier) && context.parentURL?.startsWith('file:')) {
    const file = path.resolve(path.dirname(fileURLToPath(context.parentURL)), specifier);
    const source = [`${file}.ts`, file.replace(/\.([cm]?)js$/, '.$1ts')].find((name) => fs.existsSync(name));
    if (source !== undefined && !fs.existsSync(file))
      return nextResolve(pathToFileURL(source).href, context);
  }
  const module = moduleFile(specifier);
  return nextResolve(module === undefined ? specifier : pathToFileURL(module).href, context);
}

function load(url, context, nextLoad) {
  if (url === main.url)
    return { format: 'module', source: main.source, shortCircuit: true };
  const kind = /^file:.*\.([cm]?)ts$/.exec(url);
  if (!typescript || kind === null)
    return nextLoad(url, context);
  const source = require('./typescript.js').stripFile(fileURLToPath(url));
  return { format: kind[1] === 'c' ? 'commonjs' : 'module', source, shortCircuit: true };
}

module.exports = { initialize, load, resolve };
