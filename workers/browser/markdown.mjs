// A page as Markdown: turndown's work, on a copy of what can be seen. Both run in the page's process.
import fs from 'node:fs/promises';
import path from 'node:path';
import { Refusal } from './failure.mjs';

let loaded = { directory: null, script: null };

/* Turndown as a script that makes the global TurndownService; `directory` is its package's. */
export async function turndownScript(directory) {
  if (loaded.directory !== directory) {
    const file = path.join(directory, 'lib/turndown.browser.umd.js');
    const script = await fs.readFile(file, 'utf8').catch((error) => {
      throw new Refusal('unavailable', `turndown in ${directory} cannot be loaded: ${error.message}`);
    });
    loaded = { directory, script };
  }
  return loaded.script;
}

/* In the page, as all below. What can be seen of the node, in a document where nothing is loaded, run or styled: shadow
 * trees and frames of the same origin are in place, addresses are whole, and what Markdown has no word for is gone.
 * Stops at about so many bytes of text. */
function copySeen(top, bytesMax) {
  const inert = document.implementation.createHTMLDocument('');
  const SKIPPED = new Set(('audio base canvas datalist embed frame frameset head link map meta noscript object param picture-source '
    + 'script source style svg template title track video').split(' '));
  const BLOCKS = new Set(('address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure '
    + 'footer form h1 h2 h3 h4 h5 h6 header hgroup hr html li main menu nav ol p pre search section summary table tbody td tfoot '
    + 'th thead tr ul').split(' '));
  const KEPT_IN_LINE = new Set('a b br code del em i img kbd s samp strike strong tt'.split(' '));
  const DEPTH_MAX = 400;
  let left = bytesMax;

  const make = (name, ...children) => {
    const element = inert.createElement(name);
    element.append(...children);
    return element;
  };
  const space = () => inert.createTextNode(' ');
  const address = (url) => (/^(javascript|data|blob):/i.test(url) ? '' : url);

  const addText = (data, into, keepsLines) => {
    const text = data.slice(0, left);
    left -= keepsLines ? text.length : text.replace(/\s+/g, ' ').length;
    const lines = keepsLines ? text.split('\n') : [text];
    lines.forEach((line, i) => into.append(...(i > 0 ? [make('br')] : []), line));
  };
  const languageOf = (pre) => {
    for (const element of [pre, ...pre.querySelectorAll('code'), pre.parentElement]) {
      if (!element) continue;
      const [, name] = /(?:^|\s)(?:lang(?:uage)?-|highlight-source-|brush:\s*)([\w+#.-]+)/.exec(element.getAttribute('class') ?? '') ?? [];
      const found = name ?? element.getAttribute('data-lang') ?? element.getAttribute('data-language');
      if (found) return found;
    }
    return '';
  };
  const copyPre = (element) => {
    const code = make('code');
    const text = element.innerText.slice(0, left);
    left -= text.length;
    code.append(text);
    const language = languageOf(element);
    if (/^[\w+#.-]+$/.test(language)) code.className = `language-${language}`;
    return make('pre', code);
  };
  const copyImage = (element) => {
    const image = make('img');
    image.setAttribute('alt', element.alt.replace(/\s+/g, ' ').trim());
    const source = address(element.currentSrc || element.src);
    left -= source.length;
    if (!source) return inert.createTextNode(image.alt);
    image.setAttribute('src', source);
    return image;
  };
  const copyField = (element) => {
    switch (element.localName) {
    case 'select':
      return inert.createTextNode([...element.selectedOptions].map(({ label }) => label).join(', '));
    case 'textarea':
      return inert.createTextNode(element.value.slice(0, left));
    }
    if (/^(checkbox|radio)$/.test(element.type)) {
      const box = make('input');
      box.setAttribute('data-box', element.checked ? '[x] ' : '[ ] ');
      return box;
    }
    return inert.createTextNode(/^(submit|button|reset)$/.test(element.type) ? element.value : '');
  };
  /* GFM knows one row of headings, and as many cells in each row. */
  const square = (table) => {
    const rows = [...table.rows];
    const held = []; // by column: rows that a cell above still reaches into
    let width = 0;
    for (const row of rows) {
      const cells = [...row.cells];
      row.replaceChildren();
      for (let column = 0; column < 1000 && (cells.length > 0 || held[column] > 0); column += 1) {
        if (held[column] > 0) {
          held[column] -= 1;
          row.append(make('td'));
          continue;
        }
        const cell = cells.shift();
        const [down, right] = [Math.min(cell.rowSpan || 1, 1000), Math.min(cell.colSpan, 100)];
        row.append(cell);
        held[column] = down - 1;
        for (let i = 1; i < right; i += 1) {
          column += 1;
          row.append(make('td'));
          held[column] = down - 1;
        }
      }
      width = Math.max(width, row.cells.length);
    }
    if (rows.length === 0 || width === 0) return make('div');
    for (const row of rows) while (row.cells.length < width) row.append(make('td'));
    const [first] = rows;
    const isHead = first.parentNode.localName === 'thead' || [...first.cells].every(({ localName }) => localName === 'th');
    const head = isHead ? rows.shift() : make('tr', ...first.cloneNode(true).cells);
    if (!isHead) for (const cell of head.cells) cell.replaceChildren();
    head.setAttribute('data-width', width);
    const plain = make('table', make('tbody', head, ...rows));
    return make('div', ...[...table.querySelectorAll('caption')].map((caption) => make('p', ...caption.childNodes)), plain);
  };
  const isLayout = (table) => /^(none|presentation)$/.test(table.getAttribute('role') ?? '') || table.querySelector('table') !== null;

  const childrenOf = (element) => {
    if (element.shadowRoot) return element.shadowRoot.childNodes;
    if (element.localName === 'slot' && element.assignedNodes) {
      const assigned = element.assignedNodes({ flatten: true });
      if (assigned.length > 0) return assigned;
    }
    return element.childNodes;
  };
  /* `where`: inLine, in a link or a heading, which must stay one line; inLayout, in a table that is none; depth. */
  const nameFor = (element, display, where) => {
    const name = element.localName;
    if (where.inLayout && /^(table|thead|tbody|tfoot|tr|td|th|caption)$/.test(name)) return 'div';
    if (where.inLine) return KEPT_IN_LINE.has(name) && !(name === 'a' && where.inLink) ? name : 'span';
    if (BLOCKS.has(name) || KEPT_IN_LINE.has(name)) return name;
    return /^(inline|contents|ruby)/.test(display) || display === '' ? 'span' : 'div';
  };
  const addElement = (element, into, where) => {
    const name = element.localName;
    if (SKIPPED.has(name) || where.depth > DEPTH_MAX) return;
    const style = element.ownerDocument.defaultView.getComputedStyle(element);
    const { display } = style;
    if (display === 'none' || (display !== 'contents' && !element.checkVisibility())) return;
    const isSeen = style.visibility === 'visible';
    if (isSeen && !where.inLine && name === 'pre') return void into.append(copyPre(element));
    if (isSeen && name === 'img') return void into.append(copyImage(element));
    if (isSeen && /^(input|select|textarea)$/.test(name)) return void into.append(copyField(element));
    if (/^(img|input|select|textarea|pre)$/.test(name) && !isSeen) return;
    if (name === 'iframe') return void (element.contentDocument?.body && addElement(element.contentDocument.body, into, where));

    const isTable = name === 'table' && !where.inLine;
    const isBlock = !/^(inline|contents|none)/.test(display);
    const copy = make(nameFor(element, display, isTable ? { ...where, inLayout: isLayout(element) } : where));
    const inside = {
      depth: where.depth + 1,
      inLine: where.inLine || /^(a|h[1-6])$/.test(name),
      inLink: where.inLink || name === 'a',
      inLayout: isTable ? isLayout(element) : where.inLayout,
    };
    const keepsLines = /^(pre|break-spaces)/.test(style.whiteSpace) && !where.inLine;
    for (const child of childrenOf(element)) {
      if (left <= 0) break;
      if (child.nodeType === Node.ELEMENT_NODE) addElement(child, copy, inside);
      else if (child.nodeType === Node.TEXT_NODE && isSeen) addText(child.data, copy, keepsLines);
    }
    if (copy.localName === 'a') {
      const href = address(element.href ?? '');
      if (copy.textContent.trim() === '' && !copy.querySelector('img')) copy.textContent = element.getAttribute('aria-label') ?? element.title ?? '';
      if (copy.textContent.trim() === '' && !copy.querySelector('img')) return;
      left -= href.length;
      if (typeof href === 'string' && href) copy.setAttribute('href', href);
    }
    if (copy.localName === 'ol' && element.hasAttribute('start')) copy.setAttribute('start', element.start);
    if (/^(td|th)$/.test(copy.localName)) {
      copy.colSpan = element.colSpan;
      copy.rowSpan = element.rowSpan;
    }
    if (where.inLine && isBlock) into.append(space(), copy, space());
    else into.append(isTable && !inside.inLayout ? square(copy) : copy);
  };

  const body = make('div');
  addElement(top, body, { depth: 0, inLine: false, inLink: false, inLayout: false });
  return { body, isCut: left <= 0 };
}

function markdown(node, bytesMax) {
  const top = node === document ? document.body ?? document.documentElement : node;
  if (!top) return { text: '', isCut: false };
  const { body, isCut } = copySeen(top, bytesMax);
  const service = new TurndownService({
    headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-', emDelimiter: '*', hr: '---',
  });
  service.addRule('struck', { filter: ['del', 's', 'strike'], replacement: (content) => `~~${content}~~` });
  service.addRule('box', { filter: (element) => element.hasAttribute('data-box'), replacement: (_, element) => element.getAttribute('data-box') });
  service.addRule('cell', {
    filter: ['td', 'th'],
    replacement: (content) => ` ${content.trim().replace(/\|/g, '\\|').replace(/\s*\n\s*/g, '<br>')} |`,
  });
  service.addRule('row', {
    filter: 'tr',
    replacement: (content, row) => `|${content}\n${row.hasAttribute('data-width') ? `|${' --- |'.repeat(row.getAttribute('data-width'))}\n` : ''}`,
  });
  service.addRule('rows', { filter: ['tbody'], replacement: (content) => content });
  service.addRule('table', { filter: 'table', replacement: (content) => `\n\n${content}\n\n` });
  return { text: service.turndown(body), isCut };
}

export const markdownScript = `${copySeen} ${markdown}`;
