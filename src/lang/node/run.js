'use strict';

// Run one JavaScript or TypeScript program and tell the engine, on a private channel, how it went.
//
//     node run.js OPTIONS MAINFILE [ARGS...]
//     node run.js --wait                           (worker.js: the rest comes over descriptor 4)
//
// This is the first program of a user in a sandbox.  It makes Node look as if it had been started with MAINFILE and
// leaves as much as it can to Node's own loaders, so that a program behaves as it does anywhere else.  What only some
// programs need (a parser, the type stripper, ES module hooks) is loaded when they need it.
//
// Nothing here is a security boundary: the program owns this process and may write to the channel what it likes.
// The engine checks every frame.

const fs = require('fs');
const Module = require('module');
const path = require('path');
const vm = require('vm');
const channel = require('./channel.js');
const ending = require('./exit_watch.js');
const { bindTools } = require('./tools_stub.js');

const WRAPPER_PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname'];
const USAGE_EXIT = 2;

// A text that CommonJS refuses may be a module if it has one of these.
const MODULE_SYNTAX = /\b(?:await|import|export)\b/;

function readOptions(text) {
  const options = new Map(text.split(',').map((pair) => {
    const at = pair.indexOf('=');
    return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
  }));
  const limit = options.get('value_max') ?? '';
  return {
    valueMax: /^\d+$/.test(limit) ? Number(limit) : 200000,
    preload: (options.get('preload') ?? '').split(':').filter(Boolean),
    graded: options.get('graded') === '1',
    prelude: options.get('prelude'),
  };
}

function moduleAt(id, filename, parent) {
  const module = new Module(id, parent);
  module.filename = filename;
  module.path = path.dirname(filename);
  module.paths = Module._nodeModulePaths(module.path);
  return module;
}

// The module object that Node would have made for MAINFILE.
function becomeMain(file, args) {
  process.argv.splice(1, process.argv.length, path.resolve(file), ...args);
  const main = moduleAt('.', fs.realpathSync(file), null);
  require.cache[main.filename] = main;
  process.mainModule = main;
  return main;
}

// A program whose functions are to be called is no main program: this file is, as far as it can tell, and has required it.
function becomeRequired(file) {
  process.argv.splice(1, process.argv.length, __filename);
  const filename = fs.realpathSync(file);
  process.mainModule = moduleAt('.', path.join(path.dirname(filename), path.basename(__filename)), null);
  const main = moduleAt(filename, filename, process.mainModule);
  require.cache[filename] = main;
  return main;
}

function preload(names, requireFromMain) {
  for (const name of names) {
    const identifier = name.replace(/\W+(\w)/g, (_, letter) => letter.toUpperCase());
    try {
      globalThis[identifier] = requireFromMain(name);
    } catch {
      // The program will be told when it requires the module itself.
    }
  }
}

// The SyntaxError of a text as CommonJS, or null.
function commonJsError(code, filename) {
  try {
    vm.compileFunction(code, WRAPPER_PARAMETERS, { filename });
    return null;
  } catch (error) {
    return error;
  }
}

function refuse(syntax) {
  channel.send(channel.kinds.SYNTAX, JSON.stringify(syntax.document));
  process.stderr.write(`${syntax.text}\n\nNode.js ${process.version}\n`);
  process.exitCode = 1;
}

// The last thing before the program's first instruction, for which it calls go().
function begin(main, { preload: names, role, valueMax, prelude }, typescript, go) {
  bindTools();
  preload(names, Module.createRequire(main.filename));
  if (role !== undefined) {
    role.prepare(main, typescript, go);
    return;
  }
  ending.watch(main.filename, valueMax);
  channel.send(channel.kinds.STARTED);
  if (prelude === undefined || require('./prelude.js').run(path.join(main.path, prelude), main, typescript))
    go();
}

// As Module.prototype._compile, for a text whose first lines are ours.  vm.compileFunction() of Node 18.19 and before refuses a
// negative lineOffset, which vm.Script takes; the text is correct as the body of a function (commonJsError).
function compileMoved(code, main, lines) {
  const script = new vm.Script(Module.wrap(code), { filename: main.filename, lineOffset: -lines });
  const compiled = script.runInThisContext();
  const { resolve, main: first, extensions, cache } = Module.createRequire(main.filename);
  const requireFromMain = Object.assign(function require(path) {
    return main.require(path);
  }, { resolve, main: first, extensions, cache });
  return compiled.bind(main.exports, main.exports, requireFromMain, main, main.filename, main.path);
}

// Only Node's own loader compiles what calls import().
function canMove(program) {
  return program.sourceMap === '' && !/\bimport\b/.test(program.code);
}

function runCommonJs(program, main, role) {
  const { instrumented } = program;
  const changed = instrumented.code !== program.code && commonJsError(instrumented.code, main.filename) === null;
  const code = changed ? instrumented.code : program.code;
  // From the tick queue and through bind(), so that no frame of ours is in the program's stack traces.
  if (changed && instrumented.lines > 0)
    process.nextTick(compileMoved(code, main, instrumented.lines));
  else
    process.nextTick(main._compile.bind(main, code + program.sourceMap, main.filename));
  process.nextTick(() => {
    main.loaded = true;
    role?.serve([main.exports]);
  });
}

function instrumentedFor(program, sourceType, role) {
  if (role !== undefined)
    return { code: role.instrument(program.code, sourceType), lines: 0, edit: null };
  return require('./last_expression.js').instrument(program.code, sourceType, sourceType === 'script' && canMove(program));
}

// Reads and checks the program, and calls launch() with it if nothing is wrong.
function start(file, args, options, launch) {
  let main;
  try {
    main = options.role === undefined ? becomeMain(file, args) : becomeRequired(file);
  } catch (error) {
    process.stderr.write(`Error: Cannot find module '${path.resolve(file)}' (${error.code})\n`);
    process.exitCode = 1;
    return;
  }
  const [, dialect, language] = /\.([cm]?)(ts|js)$/.exec(main.filename) ?? ['', '', 'js'];
  const typescript = language === 'ts';
  const source = fs.readFileSync(main.filename, 'utf8').replace(/^\uFEFF/, '');
  const program = { source, code: source, sourceMap: '' };
  if (typescript) {
    try {
      Object.assign(program, require('./typescript.js').strip(source, main.filename));
    } catch (error) {
      refuse(require('./syntax.js').describeTypeScript(error, main.filename, source));
      return;
    }
    require('./typescript.js').extendRequire();
  }

  const asCommonJs = dialect === 'm' ? null : commonJsError(program.code, main.filename);
  const isCommonJs = dialect !== 'm' && asCommonJs === null;
  if (asCommonJs !== null && (dialect === 'c' || !MODULE_SYNTAX.test(program.code))) {
    refuse(require('./syntax.js').describe(asCommonJs, main.filename, source));
    return;
  }
  program.instrumented = instrumentedFor(program, isCommonJs ? 'script' : 'module', options.role);
  launch(main, program, options, { isCommonJs, typescript, asCommonJs });
}

function launch(main, program, options, { isCommonJs, typescript, asCommonJs }) {
  const { role } = options;
  if (role === undefined && program.instrumented.code !== program.code) {
    ending.exposeSlots();
    ending.correctMessages(main.filename, program.instrumented.edit);
  }
  if (isCommonJs) {
    if (/\bimport\b/.test(program.code))
      require('./esm.js').offerModules();
    begin(main, options, typescript, () => runCommonJs(program, main, role));
  } else {
    const tell = { typescript, asCommonJs, refuse, begin: (go) => begin(main, options, typescript, go), serve: role?.serve };
    require('./esm.js').run(program, main, tell);
  }
}

// What a runner does instead of just running its program, or undefined.
function partOf(graded) {
  if (!graded)
    return undefined;
  const role = require('./cases.js');
  role.takeBeginning();
  return role;
}

function run([options, file, ...args], launcher = launch) {
  channel.send(channel.kinds.HELLO, JSON.stringify({ runner: 'node', version: process.versions.node }));
  const settings = readOptions(options);
  start(file, args, { ...settings, role: partOf(settings.graded) }, launcher);
}

// A run of a program that does nothing, after the text of a file was read and checked.  Nothing remains of it but
// compiled code.  What it reports goes to another descriptor.
function rehearse(file, sink) {
  const argv = [...process.argv];
  channel.divert(sink);
  run(['value_max=1,preload=', file], (main, program, options, facts) => {
    launch(main, { source: '', code: '', instrumented: { code: '', lines: 0, edit: null }, sourceMap: '' }, options, facts);
  });
  process._tickCallback();
  ending.rehearse();
  channel.divert();
  delete require.cache[process.mainModule.filename];
  process.argv = argv;
  process.mainModule = require.main;
}

if (process.argv[2] === '--wait') {
  require('./worker.js').wait(rehearse, run);
} else if (process.argv.length < 4) {
  process.stderr.write('usage: run.js OPTIONS MAINFILE [ARGS...]\n');
  process.exitCode = USAGE_EXIT;
} else {
  run(process.argv.slice(2));
}
