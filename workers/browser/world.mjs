// Questions to a page that its scripts cannot answer wrongly: they are put in a world of their own, which shares the
// document with the page, and neither its globals nor its policies.
import { randomUUID } from 'node:crypto';
import { elementFailure } from './element.mjs';

const WORLD = 'abxd';
const TRIES_MAX = 10;

// The document went away, and another one comes.
const isElsewhere = (error) => /Cannot find (default execution )?context|context was destroyed|Inspected target navigated|No frame for given id|Promise was collected/
  .test(error.message);

const frames = new WeakMap(); // cdp → a promise of its main frame's id

async function worldOf({ cdp }) {
  let frame = frames.get(cdp);
  if (!frame) {
    frame = cdp.send('Target.getTargetInfo').then(({ targetInfo }) => targetInfo.targetId);
    frames.set(cdp, frame);
  }
  const { executionContextId } = await cdp.send('Page.createIsolatedWorld', { frameId: await frame, worldName: WORLD });
  return executionContextId;
}

async function evaluate({ cdp }, contextId, expression) {
  const { result, exceptionDetails: thrown } = await cdp.send('Runtime.evaluate', {
    expression, contextId, awaitPromise: true, returnByValue: true,
  });
  if (thrown) throw new Error(thrown.exception?.description ?? thrown.text);
  return result.value;
}

const callOf = (lookAt, node, args) => `(${lookAt})(${[node, ...args.map((arg) => JSON.stringify(arg))].join(', ')})`;

/* In the library's world: sends an event of that name to the element that was found, and finds it again. */
const ENGINE = 'abxd-tell';
const engine = `{
  query(element, name) { element.dispatchEvent(new Event(name, { bubbles: true, composed: true })); return element; },
  queryAll(element, name) { return [this.query(element, name)]; },
}`;

const prepared = new WeakMap(); // selectors of the library → a promise

/* Before the first context is made. */
export function prepareSelectors(selectors) {
  if (!prepared.has(selectors)) prepared.set(selectors, selectors.register(ENGINE, engine, { contentScript: true }));
  return prepared.get(selectors);
}

/* With the element that the library finds for the selector: it sends an event of no other name there, and who waits for
 * that in our world looks at the element before anything else can happen to it. */
async function askOf(tab, contextId, lookAt, args, selector, call) {
  const name = `abxd-${randomUUID()}`;
  await evaluate(tab, contextId, `void (globalThis['${name}'] = new Promise((resolve, reject) => addEventListener('${name}', (event) => {
    try { resolve(${callOf(lookAt, 'event.composedPath()[0]', args)}); } catch (error) { reject(error); }
  }, { capture: true, once: true })))`);
  const told = evaluate(tab, contextId, `globalThis['${name}'].finally(() => { delete globalThis['${name}']; })`);
  const found = tab.page.getAttribute(`${selector} >> nth=0 >> ${ENGINE}=${name}`, 'id', { timeout: call.left(), signal: call.signal });
  const notFound = found.then(() => new Promise(() => {}), async (error) => { throw await elementFailure(tab, error, selector, call); });
  return Promise.race([told, notFound]);
}

/* What lookAt(node, ...args) returns: a function that is sent there as text, and its arguments as JSON. The node is the
 * document, or the first element for the selector, which is waited for. `libraries` are scripts: sent where there is
 * no global of the name yet. */
export async function askWorld(tab, lookAt, args, { selector, libraries = {}, call }) {
  for (let tries = 1; ; tries += 1) {
    try {
      const contextId = await worldOf(tab);
      for (const [name, script] of Object.entries(libraries))
        if (!await evaluate(tab, contextId, `'${name}' in globalThis`)) await evaluate(tab, contextId, `${script}\n;0`);
      if (selector === undefined) return await evaluate(tab, contextId, callOf(lookAt, 'document', args));
      return await askOf(tab, contextId, lookAt, args, selector, call);
    } catch (error) {
      if (!isElsewhere(error) || tries === TRIES_MAX || call.isOver) throw error;
    }
  }
}
