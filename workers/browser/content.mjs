// GET /browser/content: a page, or an element of it, as HTML, text or Markdown. All is made and cut in the page's own
// process: a large one holds up nobody else, and what is too much is never sent.
import { markdownScript, turndownScript } from './markdown.mjs';
import { Refusal } from './failure.mjs';
import { askWorld } from './world.mjs';

export const waitsFor = ({ selector }) =>
  (selector === undefined ? 'the page\'s content' : `the element "${String(selector).slice(0, 200)}"`);

/* In the page, as the next ones: whole characters that fit into so many bytes. */
function fit(text, bytesMax) {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(Math.min(bytesMax, 3 * text.length)));
  const content = read < text.length ? text.slice(0, read) : text;
  return { content: content.toWellFormed(), truncated: read < text.length, title: document.title };
}

function html(node) {
  if (node !== document) return node.outerHTML;
  const { doctype, documentElement } = document;
  return `${doctype ? new XMLSerializer().serializeToString(doctype) : ''}${documentElement?.outerHTML ?? ''}`;
}

/* innerText knows how a page looks, but not what is in a shadow tree: with one, it is asked for the parts around. */
function text(node) {
  const top = node === document ? document.body ?? document.documentElement : node;
  if (!top) return '';
  const above = new Set(); // elements with a shadow tree in them
  for (const element of [top, ...top.querySelectorAll('*')]) {
    if (!element.shadowRoot) continue;
    for (let one = element; one && one !== top.parentNode && !above.has(one); one = one.parentNode) above.add(one);
  }
  const plain = (element) => element.innerText ?? element.textContent;
  if (above.size === 0) return plain(top);
  const pieces = [];
  const add = (element) => {
    if (element.nodeType === Node.TEXT_NODE) return void pieces.push(element.data.replace(/\s+/g, ' '));
    if (element.nodeType !== Node.ELEMENT_NODE) return;
    const isSlot = element.localName === 'slot' && element.getRootNode() instanceof ShadowRoot;
    const { display } = getComputedStyle(element);
    if (display === 'none' || /^(script|style|template|noscript)$/.test(element.localName)) return;
    const isBlock = !/^(inline|contents)/.test(display);
    if (isBlock) pieces.push('\n');
    if (element.shadowRoot) addTree(element.shadowRoot);
    else if (isSlot && element.assignedNodes().length > 0) element.assignedNodes({ flatten: true }).forEach(add);
    else if (above.has(element) || isSlot) element.childNodes.forEach(add);
    else pieces.push(plain(element));
    if (isBlock) pieces.push('\n');
  };
  const addTree = (tree) => {
    for (const element of tree.querySelectorAll('*')) {
      if (!element.shadowRoot && element.localName !== 'slot') continue;
      for (let one = element; one && one !== tree && !above.has(one); one = one.parentNode) above.add(one);
    }
    tree.childNodes.forEach(add);
  };
  add(top);
  return pieces.join('').replace(/[ \t]*\n[ \t]*/g, '\n').replace(/\n{3,}/g, '\n\n').trim();
}

const scripts = {
  html: `(node, bytesMax) => { ${fit} ${html} return fit(html(node), bytesMax); }`,
  text: `(node, bytesMax) => { ${fit} ${text} return fit(text(node), bytesMax); }`,
  markdown: `(node, bytesMax) => {
    ${fit} ${markdownScript}
    const { text, isCut } = markdown(node, bytesMax);
    const own = fit(text, bytesMax);
    return { ...own, truncated: own.truncated || isCut };
  }`,
};

export async function content(tab, { format = 'html', selector, max_bytes: bytesMax = 1024 * 1024, parts }, call) {
  const libraries = {};
  if (format === 'markdown') {
    if (!parts?.turndown)
      throw new Refusal('unavailable', 'Markdown needs the package turndown: script/bootstrap --with-browser');
    libraries.TurndownService = await turndownScript(parts.turndown);
  }
  return { format, ...await askWorld(tab, scripts[format], [bytesMax], { selector, libraries, call }) };
}
