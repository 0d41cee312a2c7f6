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
function rewriteImport(edits, node) {
  const { whole, parts } = importPattern(node);
  const source = [JSON.stringify(withoutRegistry(node.source.value)), ...importOptions(node)];
  const load = `await import(${source.join(', ')})`;
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

function rewriteInScript(edits, node) {
  if (node.type === 'ClassDeclaration') {
    edits.insert(node.start, `var ${node.id.name} = `);
    edits.insert(node.end, ';');
  } else if (node.type === 'VariableDeclaration' && node.kind !== 'var') {
    edits.replace(node.start, node.start + node.kind.length, 'var'.padEnd(node.kind.length));
    // A `let` that is executed again begins anew, which a `var` does not.
    for (const { init, end } of node.declarations) {
      if (init === null)
        edits.insert(end, ' = undefined');
    }
  }
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
  return { code, tree: acorn.parse(code, SETTINGS), columns: 0 };
}

// {code, names, isAsync, hasValue, columns}: the text to run as a script; which names it declares; whether its completion
// value is a promise for [value]; whether the last statement is an expression; by how much the first line was moved.
// Throws acorn's SyntaxError; where V8 knows better than acorn, the text stays as it is.
function persist(source) {
  const { code, tree, columns } = parse(source);
  const edits = new Edits(code);
  const nodes = [...outsideOfFunctions(tree)];
  const isAsync = nodes.some(([node]) => node.type === 'AwaitExpression' || node.type === 'ImportDeclaration'
    || (node.type === 'ForOfStatement' && node.await));
  const names = [];
  const hoisted = { functions: [] };
  const rewrite = (node, parent) => {
    names.push(...namesDeclared(node));
    if (isAsync)
      rewriteInFunction(edits, node, parent, hoisted);
    else
      rewriteInScript(edits, node);
  };
  for (const [node, parent] of nodes) {
    if (node.type === 'ImportDeclaration') {
      const { whole } = importPattern(node);
      names.push(...node.specifiers.map(({ local }) => local.name), ...(whole ? [whole] : []));
      rewriteImport(edits, node);
    } else if (/^Export/.test(node.type)) {
      rewriteExport(edits, node);
    } else if (isDeclaration(node) && node.id !== null) {
      const isTop = parent === tree || /^Export/.test(parent.type);
      if (isTop || (node.type === 'VariableDeclaration' && node.kind === 'var'))
        rewrite(node, parent);
    }
  }
  const last = tree.body.at(-1);
  const hasValue = last?.type === 'ExpressionStatement';
  if (!isAsync)
    return { code: edits.applied(), names, isAsync, hasValue, columns };
  let begin = '';
  if (hasValue) {
    const previous = tree.body.at(-2);
    if (previous === undefined)
      begin = RETURN;
    else
      edits.insert(code.slice(previous.end, last.start).includes('\n') ? previous.end : last.start, `;${RETURN}`);
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

module.exports = { asFunction, exposeNames, persist };
