'use strict';

// Makes the text of an execution leave its declarations to later ones, which may declare them again.
//
// A script's `var` and functions are properties of the global object and last by themselves.  So `let` and `const` become
// `var`, and a class the value of one.  A text with `await` or `import` has to be in a function; there, declarations
// become assignments, behind a `var` outside of the function.  Lines stay where they are, and columns where possible.

const acorn = require('acorn');

const PREFIX = '(async () => { ';
const SUFFIX = '\n})()';
// V8 gives an unknown name the position of its statement, or of its operand in a comma expression: hence `0,`.
const RETURN = ' return [(0,';
const RETURN_END = ')]';
// Before V8 11 (Node 20) an unknown name has the position of the statement in any case.  Then that begins where the
// expression does; other columns of its first line are larger by the length of RETURN.  Remove it when Node 20 is our oldest.
const STATEMENT_HAS_POSITION = parseInt(process.versions.v8, 10) < 11;
// What import.meta is called, which a script has not; the first letter is U+2170.
const META = '\u2170mport_meta';
const SETTINGS = {
  ecmaVersion: 'latest', sourceType: 'script', allowAwaitOutsideFunction: true, allowImportExportEverywhere: true,
  allowHashBang: true, allowReturnOutsideFunction: false,
};

class Edits {
  constructor(code) {
    this.code = code;
    this.list = [];
  }

  insert(at, text) {
    this.replace(at, at, text);
  }

  replace(start, end, text) {
    this.list.push({ start, end, text, order: this.list.length });
  }

  // Removes a text and keeps its lines and columns.
  blank(start, end) {
    this.replace(start, end, this.code.slice(start, end).replace(/[^\n]/g, ' '));
  }

  applied() {
    let code = '';
    let at = 0;
    for (const { start, end, text } of this.list.sort((a, b) => a.start - b.start || a.order - b.order)) {
      code += this.code.slice(at, start) + text;
      at = end;
    }
    return code + this.code.slice(at);
  }
}

function isFunction(node) {
  return /Function/.test(node.type);
}

function* children(node) {
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child?.type === 'string')
        yield child;
    }
  }
}

// Every node.
function* all(node) {
  yield node;
  for (const child of children(node))
    yield* all(child);
}

// Every node that is in no function (and no part of a class that is one), with its parent.
function* outsideOfFunctions(node, parent = null) {
  yield [node, parent];
  if (isFunction(node) || node.type === 'PropertyDefinition' || node.type === 'StaticBlock')
    return;
  for (const child of children(node))
    yield* outsideOfFunctions(child, node);
}

function* namesOf(pattern) {
  switch (pattern?.type) {
  case 'Identifier':
    yield pattern.name;
    break;
  case 'ObjectPattern':
    for (const property of pattern.properties)
      yield* namesOf(property.type === 'Property' ? property.value : property);
    break;
  case 'ArrayPattern':
    for (const element of pattern.elements)
      yield* namesOf(element);
    break;
  case 'AssignmentPattern':
    yield* namesOf(pattern.left);
    break;
  case 'RestElement':
    yield* namesOf(pattern.argument);
    break;
  }
}

function importPattern(node) {
  const whole = node.specifiers.find(({ type }) => type === 'ImportNamespaceSpecifier');
  const parts = node.specifiers.filter((one) => one !== whole).map((one) => {
    const name = one.type === 'ImportDefaultSpecifier' ? 'default' : one.imported.name ?? one.imported.raw;
    return `${name}: ${one.local.name}`;
  });
  return { whole: whole?.local.name, parts };
}

// `npm:name@version` is how some runtimes want a package to be asked for; here it is the one that is installed.
function withoutRegistry(specifier) {
  return /^npm:\/?/.test(specifier) ? specifier.replace(/^npm:\/?((?:@[^/@]+\/)?[^/@]+)(?:@[^/]*)?/, '$1') : specifier;
}

// The second argument of import() for the attributes of a declaration, if it has any.
function importOptions({ attributes = [] }) {
  const pairs = attributes.map(({ key, value }) => `${JSON.stringify(key.name ?? key.value)}: ${value.raw}`);
  return pairs.length > 0 ? [`{ with: { ${pairs.join(', ')} } }`] : [];
}

// Statements for an import declaration, on as many lines as it has.
function rewriteImport(edits, node, importer) {
  const { whole, parts } = importPattern(node);
  const source = [JSON.stringify(withoutRegistry(node.source.value)), ...importOptions(node)];
  const load = `await ${importer}(${source.join(', ')})`;
  let text = load;
  if (whole !== undefined)
    text = `${whole} = ${load}${parts.length > 0 ? `; ({ ${parts.join(', ')} } = ${whole})` : ''}`;
  else if (parts.length > 0)
    text = `({ ${parts.join(', ')} } = ${load})`;
  const lines = edits.code.slice(node.start, node.end).split('\n').length - 1;
  edits.replace(node.start, node.end, `;${text};${'\n'.repeat(lines)}`);
}

// `export` has no meaning here; what is exported is declared.  A default export without a name is an expression.
function rewriteExport(edits, node) {
  const isExpression = node.type === 'ExportDefaultDeclaration' && !node.declaration.id;
  if (isExpression) {
    const end = node.start + edits.code.slice(node.start).indexOf('default') + 'default'.length;
    edits.replace(node.start, end, ';('.padEnd(end - node.start));
    edits.insert(lastOfExpression(edits.code, node), ');');
  } else if (node.declaration)
    edits.blank(node.start, node.declaration.start);
  else
    edits.blank(node.start, node.end);
}

// In place of a blank, if there is one.
function endStatement(edits, at) {
  edits.replace(at, edits.code[at] === ' ' ? at + 1 : at, ';');
}

// A text before a statement, on a line of before where there is one, because columns stay as they are then.  By how much
// the columns of the text's first line become larger that can be told to V8.
function insertBefore(edits, node, previous, text) {
  const { code } = edits;
  const end = previous?.end ?? 0;
  const gap = code.slice(end, node.start);
  if (gap.includes('\n') && !gap.startsWith('#!')) {
    edits.insert(end, previous === undefined ? text : `;${text}`);
    return 0;
  }
  edits.insert(node.start, text);
  return previous === undefined && node.start === 0 ? text.length : 0;
}

function rewriteInScript(edits, node, previous) {
  if (node.type === 'ClassDeclaration') {
    endStatement(edits, node.end);
    return insertBefore(edits, node, previous, `var ${node.id.name} = `);
  }
  if (node.type === 'VariableDeclaration' && node.kind !== 'var') {
    edits.replace(node.start, node.start + node.kind.length, 'var'.padEnd(node.kind.length));
    // A `let` that is executed again begins anew, which a `var` does not.
    for (const { init, end } of node.declarations) {
      if (init === null)
        edits.insert(end, ' = undefined');
    }
  }
  return 0;
}

function rewriteInFunction(edits, node, parent, hoisted) {
  if (node.type === 'ClassDeclaration') {
    edits.insert(node.start, `${node.id.name} = `);
    edits.insert(node.end, ';');
    return;
  }
  if (node.type === 'FunctionDeclaration') {
    hoisted.functions.push(node.id.name);
    return;
  }
  const inHead = /^For/.test(parent.type) && parent.body !== node;
  if (inHead && parent.type !== 'ForStatement') {
    edits.blank(node.start, node.declarations[0].start);
    return;
  }
  edits.replace(node.start, node.start + node.kind.length, `${inHead ? '' : 'void'}(`.padEnd(node.kind.length));
  for (const one of node.declarations) {
    if (one.init === null)
      edits.insert(one.end, node.kind === 'var' ? ` = ${one.id.name}` : ' = undefined');
  }
  edits.insert(node.declarations.at(-1).end, ')');
}

function isDeclaration(node) {
  return node?.type === 'VariableDeclaration' || node?.type === 'ClassDeclaration' || node?.type === 'FunctionDeclaration';
}

function namesDeclared(node) {
  return node.type === 'VariableDeclaration' ? node.declarations.flatMap(({ id }) => [...namesOf(id)]) : [node.id.name];
}

// Attributes of imports were called so before, and the parser does not know them by that name.
function withoutAssert(code) {
  return code.replace(/(\b(?:from|import)\s*(['"])[^'"\n]*\2\s*)assert(?=\s*\{)/g, '$1with  ');
}

function parseText(code) {
  try {
    return { code, tree: acorn.parse(code, SETTINGS), columns: 0 };
  } catch (error) {
    const other = withoutAssert(code);
    if (other === code)
      throw error;
    return { code: other, tree: acorn.parse(other, SETTINGS), columns: 0 };
  }
}

// An object literal at the beginning of a statement would be a block.
function parse(code) {
  if (/^\s*\{/.test(code) && !/;\s*$/.test(code)) {
    try {
      const inBrackets = `(${code}\n)`;
      return { code: inBrackets, tree: acorn.parse(inBrackets, SETTINGS), columns: -1 };
    } catch {
      // It is a block.
    }
  }
  return parseText(code);
}

function rewriteImporting(edits, tree, importer) {
  for (const node of all(tree)) {
    if (node.type === 'ImportExpression' && importer !== 'import')
      edits.replace(node.start, node.start + importer.length, importer);
    else if (node.type === 'MetaProperty' && node.meta.name === 'import')
      edits.replace(node.start, node.end, META.padEnd(node.end - node.start));
  }
}

// Between the last two statements, on the line of the first if that is another.
function insertReturn(edits, end, start) {
  const isOtherLine = edits.code.slice(end, start).includes('\n');
  if (isOtherLine && STATEMENT_HAS_POSITION) {
    edits.insert(end, ';');
    edits.insert(start, RETURN.trimStart());
  } else {
    edits.insert(isOtherLine ? end : start, `;${RETURN}`);
  }
}

// {code, names, isAsync, hasValue, columns}: the text to run as a script; which names it declares; whether its completion
// value is a promise for [value]; whether the last statement is an expression; by how much the first line was moved.
// `importer` is what import() is called: itself, or, where a script has no import(), a global function with a name of as
// many characters.
// Throws acorn's SyntaxError; where V8 knows better than acorn, the text stays as it is.
function persist(source, importer = 'import') {
  const { code, tree, columns } = parse(source);
  const edits = new Edits(code);
  const nodes = [...outsideOfFunctions(tree)];
  const isAsync = nodes.some(([node]) => node.type === 'AwaitExpression' || node.type === 'ImportDeclaration'
    || (node.type === 'ForOfStatement' && node.await));
  const names = [];
  const hoisted = { functions: [] };
  let moved = 0;
  const rewrite = (node, parent) => {
    names.push(...namesDeclared(node));
    if (isAsync)
      rewriteInFunction(edits, node, parent, hoisted);
    else
      moved += rewriteInScript(edits, node, parent === tree ? tree.body[tree.body.indexOf(node) - 1] : node);
  };
  for (const [node, parent] of nodes) {
    if (node.type === 'ImportDeclaration') {
      const { whole } = importPattern(node);
      names.push(...node.specifiers.map(({ local }) => local.name), ...(whole ? [whole] : []));
      rewriteImport(edits, node, importer);
    } else if (/^Export/.test(node.type)) {
      rewriteExport(edits, node);
    } else if (isDeclaration(node) && node.id !== null) {
      const isTop = parent === tree || /^Export/.test(parent.type);
      if (isTop || (node.type === 'VariableDeclaration' && node.kind === 'var'))
        rewrite(node, parent);
    }
  }
  if (/\bimport\b/.test(code))
    rewriteImporting(edits, tree, importer);
  const last = tree.body.at(-1);
  const hasValue = last?.type === 'ExpressionStatement';
  if (!isAsync)
    return { code: edits.applied(), names, isAsync, hasValue, columns: columns - moved };
  let begin = '';
  if (hasValue) {
    const previous = tree.body.at(-2);
    if (previous === undefined)
      begin = RETURN;
    else
      insertReturn(edits, previous.end, last.start);
    edits.insert(lastOfExpression(code, last), RETURN_END);
  }
  const unique = [...new Set(names)];
  const head = unique.length > 0 ? `var ${unique.join(', ')}; ` : '';
  const functions = hoisted.functions.map((name) => `globalThis.${name} = ${name}; `).join('');
  const prefix = `${head}${PREFIX}${functions}${begin}`;
  return { code: `${prefix}${edits.applied()}${SUFFIX}`, names, isAsync, hasValue, columns: columns - prefix.length };
}

// Where the expression of a statement ends, brackets around it included: before the `;`, if there is one.
function lastOfExpression(code, statement) {
  return code[statement.end - 1] === ';' ? statement.end - 1 : statement.end;
}

// The text, and behind it an assignment to `target`: an object of functions, which return what the names stand for that it
// declares outside of functions.  The text itself where the parser does not know it.
function exposeNames(code, sourceType, target) {
  let tree;
  try {
    tree = acorn.parse(code, { ...SETTINGS, sourceType, allowImportExportEverywhere: false, allowReturnOutsideFunction: true });
  } catch {
    return code;
  }
  const names = new Set();
  for (const [node, parent] of outsideOfFunctions(tree)) {
    const isTop = parent === tree || /^Export/.test(parent?.type);
    let declared = [];
    if (node.type === 'ImportDeclaration')
      declared = node.specifiers.map(({ local }) => local.name);
    else if (isDeclaration(node) && node.id !== null && (isTop || node.kind === 'var'))
      declared = namesDeclared(node);
    for (const name of declared)
      names.add(name);
  }
  return `${code}\n;${target}={${[...names].map((name) => `${name}:()=>${name}`).join()}};`;
}

// For what is no program: the text in a function, so that V8 sees the mistake and not that there is an `await`.
function asFunction(code) {
  return { code: `${PREFIX}${code}${SUFFIX}`, columns: -PREFIX.length };
}

module.exports = { META, asFunction, exposeNames, persist };
