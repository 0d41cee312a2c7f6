'use strict';

// Runs a program that is an ES module, in the mixed form that models like to write: with require() and its kin too.

const fs = require('fs');
const Module = require('module');
const path = require('path');
const { pathToFileURL } = require('url');
const { describe } = require('./syntax.js');
const hooks = require('./hooks.js');

const MODULES = '/opt/caisson/modules';    // SANDBOX_MODULES
const UNSETTLED_EXIT = 13;      // Node's own code for a top-level await that nothing will ever settle

// The SyntaxError of a text as a module, or null.  Only import() compiles modules, and it would run them; so the text
// gets an import that cannot be resolved, which Node finds out after compiling and before running.
async function moduleError(code) {
  try {
    await import(`data:text/javascript,${encodeURIComponent(`${code}\nimport 'caisson:none';`)}`);
    return null;
  } catch (error) {
    // A RangeError says that the text is nested too deeply for the compiler.
    return error instanceof SyntaxError || error instanceof RangeError ? error : null;
  }
}

// What CommonJS has and modules lack becomes global, because a declaration would clash with the program's own
// `const require = createRequire(...)`.
function exposeCommonJs(code, main) {
  const values = {
    require: Module.createRequire(main.filename),
    module: main,
    exports: main.exports,
    __filename: main.filename,
    __dirname: main.path,
  };
  for (const [name, value] of Object.entries(values)) {
    if (new RegExp(`\\b${name}\\b`).test(code))
      Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
}

// "type" of the package.json that governs a folder.
function packageType(folder) {
  for (;;) {
    try {
      return JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8')).type;
    } catch (error) {
      if (error.code !== 'ENOENT' || path.dirname(folder) === folder)
        return undefined;
    }
    folder = path.dirname(folder);
  }
}

// Will this Node, without hooks, load the main file as a module, and is that the text we want it to run?
function isPlainModule(program, main) {
  if (program.code !== program.source)
    return false;
  const extension = path.extname(main.filename);
  if (extension !== '.js')
    return extension === '.mjs';
  const type = packageType(main.path);
  // Versions that can require() modules also recognise them by their syntax.
  return type === 'module' || (type === undefined && process.features.require_module === true);
}

function importMain(url) {
  let pending = true;
  let stuck = false;
  // Not caught: the rejection is the program's uncaught error, and Node reports it as such.
  import(url).finally(() => { pending = false; });
  process.on('beforeExit', () => { stuck = pending; });
  process.on('exit', (code) => {
    if (stuck && pending && code === 0) {
      process.stderr.write(`Warning: Detected unsettled top-level await at ${url}\n`);
      process.exitCode = UNSETTLED_EXIT;
    }
  });
}

// The folder of the request's modules, or null.
function modulesFolder() {
  return (process.env.NODE_PATH ?? '').split(':').includes(MODULES) ? MODULES : null;
}

// For import() in a program of CommonJS.
function offerModules() {
  const settings = { main: { url: '', source: '' }, typescript: false, modules: modulesFolder() };
  if (settings.modules === null)
    return;
  if (Module.registerHooks !== undefined) {
    hooks.initialize(settings);
    Module.registerHooks({ resolve: hooks.resolve });
  } else {
    Module.register(pathToFileURL(path.join(__dirname, 'hooks.js')).href, { data: settings });
  }
}

// Returns the URL of the program, which has begun to run.
function launch(program, main, typescript, isMain) {
  const { href: url } = pathToFileURL(main.filename);
  const settings = { main: { url, source: program.code + program.sourceMap }, typescript, modules: modulesFolder() };
  if (Module.registerHooks !== undefined) {
    hooks.initialize(settings);
    Module.registerHooks({ resolve: hooks.resolve, load: hooks.load });
    delete require.cache[main.filename];    // or the loader would think that it has run
    if (isMain)
      Module.runMain();
    else
      importMain(url);
    return url;
  }
  // Before Node 22.15 hooks run in a thread of their own, which takes 25 ms to start.  Remove this and importMain()
  // when 22.15 is our oldest.
  if (settings.modules !== null || !isPlainModule(program, main))
    Module.register(pathToFileURL(path.join(__dirname, 'hooks.js')).href, { data: settings });
  importMain(url);
  return url;
}

// Of the two errors that a text gives which is neither CommonJS nor a module, the one that its author should see.
function tellingError(code, asCommonJs, asModule) {
  const meantModule = asCommonJs === null || /^\s*(?:import|export)\b/m.test(code)
    || asCommonJs.message.startsWith('await is only valid');
  return meantModule ? asModule : asCommonJs;
}

async function run(program, main, { typescript, asCommonJs, begin, refuse, serve }) {
  const original = program.code;
  let error = null;
  for (const code of new Set([program.instrumented.code, original])) {
    program.code = code;
    error = await moduleError(code);
    if (error === null)
      break;
  }
  if (error !== null) {
    refuse(describe(tellingError(original, asCommonJs, error), main.filename, original));
    return;
  }
  begin(() => {
    exposeCommonJs(original, main);
    const url = launch(program, main, typescript, serve === undefined);
    // A rejection is reported by the other import().
    if (serve !== undefined)
      import(url).then((namespace) => serve([namespace, namespace.default, main.exports]), () => {});
  });
}

module.exports = { offerModules, run };
