'use strict';

// TypeScript becomes JavaScript by replacing types with blanks, so lines and columns stay.  Enums, namespaces and
// parameter properties need code instead; only texts that have them are rewritten, with a source map.
//
// Newer versions of Node can do this themselves.  We use the library with every version: it is the same code, loads in
// half the time of the one inside Node 22 and 24, and does not warn that it is experimental.

const fs = require('fs');
const Module = require('module');
const path = require('path');
const { transformSync } = require('@swc/wasm-typescript');

// Returns {code, sourceMap}; throws the library's {message, startLine, startColumn} for a syntax error.
function strip(code, filename) {
  try {
    return { code: transformSync(code, { mode: 'strip-only', filename }).code, sourceMap: '' };
  } catch (error) {
    if (error?.code !== 'UnsupportedSyntax')
      throw error;
  }
  const { code: rewritten, map } = transformSync(code, {
    mode: 'transform',
    filename: path.basename(filename),
    sourceMap: true,
    transform: { noEmptyExport: true },     // it would be the last statement
  });
  process.setSourceMapsEnabled(true);
  const encoded = Buffer.from(map).toString('base64');
  return { code: rewritten, sourceMap: `\n//# sourceMappingURL=data:application/json;base64,${encoded}` };
}

function stripFile(filename) {
  const { code, sourceMap } = strip(fs.readFileSync(filename, 'utf8').replace(/^\uFEFF/, ''), filename);
  return code + sourceMap;
}

// Let require() find and load TypeScript.
function extendRequire() {
  Module._extensions['.ts'] = Module._extensions['.cts'] = (module, filename) => {
    module._compile(stripFile(filename), filename);
  };
}

module.exports = { extendRequire, strip, stripFile };
