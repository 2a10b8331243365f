// What a cell of JavaScript needs changed before V8's console mode takes it: import() has no loader there, import
// declarations are for modules only, and names can be declared again only as they were before. Positions of lines stay.
import { createRequire } from 'node:module';

let acorn = null;
let walk = null;
try {
  const require = createRequire(import.meta.url);
  acorn = require('internal/deps/acorn/acorn/dist/acorn');
  walk = require('internal/deps/acorn/acorn-walk/dist/walk');
} catch {} // a node without it: cells run as they are

const newlines = (text) => '\n'.repeat(text.split('\n').length - 1);

function namesOf(pattern, out) {
  switch (pattern?.type) {
  case 'Identifier':
    out.push(pattern.name);
    break;
  case 'ObjectPattern':
    for (const property of pattern.properties) namesOf(property.value ?? property.argument, out);
    break;
  case 'ArrayPattern':
    for (const element of pattern.elements) namesOf(element, out);
    break;
  case 'AssignmentPattern':
    namesOf(pattern.left, out);
    break;
  case 'RestElement':
    namesOf(pattern.argument, out);
    break;
  }
  return out;
}

function importText(node) {
  const name = (part) => part.name ?? JSON.stringify(part.value);
  const from = `await __abxdImport(${node.source.raw})`;
  const whole = node.specifiers.find((one) => one.type === 'ImportNamespaceSpecifier');
  const parts = node.specifiers.filter((one) => one !== whole).map((one) =>
    one.type === 'ImportDefaultSpecifier' ? `default: ${one.local.name}` : `${name(one.imported)}: ${one.local.name}`);
  if (node.specifiers.length === 0) return `${from};void 0;`;
  if (!whole) return `let {${parts.join(', ')}} = ${from};`;
  return `let ${whole.local.name} = ${from}${parts.length > 0 ? `, {${parts.join(', ')}} = ${whole.local.name}` : ''};`;
}

/* `assigned`: names that are bound already in another way; their declarations become assignments. */
export function rewrite(code, assigned) {
  if (!acorn) return code;
  let tree;
  try {
    tree = acorn.parse(code, {
      ecmaVersion: 'latest', sourceType: 'script', allowAwaitOutsideFunction: true, allowImportExportEverywhere: true,
      allowHashBang: true,
    });
  } catch {
    return code; // V8 says what is wrong with it
  }
  const edits = [];
  const edit = (from, to, text) => edits.push({ from, to, text });
  const clash = (names) => names.some((name) => assigned.has(name));

  for (let node of tree.body) {
    if (node.type === 'ImportDeclaration') {
      edit(node.start, node.end, importText(node) + newlines(code.slice(node.start, node.end)));
      continue;
    }
    if (node.type === 'ExportNamedDeclaration' && node.declaration) {
      edit(node.start, node.declaration.start, newlines(code.slice(node.start, node.declaration.start)));
      node = node.declaration;
    }
    if (node.type === 'VariableDeclaration') {
      const names = node.declarations.flatMap((one) => namesOf(one.id, []));
      if (clash(names)) {
        edit(node.start, node.start + node.kind.length, ';(');
        for (const one of node.declarations) if (!one.init) edit(one.end, one.end, ' = undefined');
        const last = node.declarations.at(-1).end;
        edit(last, node.end, ');void 0;');
      } else if (node.kind === 'const') edit(node.start, node.start + 5, 'let');
    } else if (/^(Function|Class)Declaration$/.test(node.type) && node.id && clash([node.id.name])) {
      edit(node.start, node.start, `;${node.id.name} = `);
      edit(node.end, node.end, ';void 0;');
    }
  }
  walk.full(tree, (node) => {
    if (node.type === 'ImportExpression') edit(node.start, node.start + 6, '__abxdImport');
  });

  edits.sort((a, b) => a.from - b.from || a.to - b.to);
  let out = '';
  let at = 0;
  for (const { from, to, text } of edits) {
    if (from < at) continue;
    out += code.slice(at, from) + text;
    at = to;
  }
  return out + code.slice(at);
}
