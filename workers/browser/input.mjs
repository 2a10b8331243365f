// POST /browser/click and /browser/type.
import { setTimeout as sleep } from 'node:timers/promises';
import { elementFailure, quoted } from './element.mjs';
import { Refusal } from './failure.mjs';

const SETTLE_MAX_MS = 500; // a page that computes

export const waitsFor = ({ selector }) => `the element ${quoted(selector)}`;

/* Waits for the document to which the input leads: a form is sent a little after the key was pressed. */
async function settled(tab, call) {
  const expression = 'new Promise((resolve) => setTimeout(() => resolve(document.title)))';
  const asked = tab.cdp.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    .then(({ result }) => String(result.value ?? ''));
  const title = await Promise.race([asked, sleep(SETTLE_MAX_MS, null, { signal: call.signal })]).catch(() => null);
  if (!tab.isLeaving) return title === null ? {} : { title };
  call.waitsFor = 'the page to which that leads';
  await Promise.race([tab.arrival(), call.over]);
  await tab.page.waitForLoadState('domcontentloaded', call.bounds()).catch(() => {});
  return {};
}

/* What the library says when the input took place, and the page to which it leads does not come. */
function checkLeads(error, done, call) {
  if (error.name === 'TimeoutError' && /waiting for scheduled navigations/.test(error.message))
    throw new Refusal('upstream_timeout',
      `${done}, but the page to which that leads did not come within timeout_ms (${call.timeoutMs})`);
}

export async function click(tab, params, call) {
  try {
    await tab.page.click(params.selector, {
      button: params.button, clickCount: params.click_count, modifiers: params.modifiers,
      ...call.bounds(),
    });
  } catch (error) {
    checkLeads(error, 'the element was clicked', call);
    throw await elementFailure(tab, error, params.selector, call);
  }
  return settled(tab, call);
}

/* In the page: focus with the caret behind all that is there. Says whether text can be typed. */
function focusAtEnd(element) {
  const field = element.closest('input, textarea') ?? element;
  const others = ['checkbox', 'radio', 'file', 'button', 'submit', 'reset', 'image', 'range', 'color', 'hidden'];
  if (field.matches('textarea') || (field.matches('input') && !others.includes(field.type))) {
    field.focus();
    try {
      field.setSelectionRange(field.value.length, field.value.length);
    } catch {} // a type without a caret that scripts may move
    return true;
  }
  if (!element.isContentEditable) return false;
  element.focus();
  const selection = element.ownerDocument.getSelection();
  selection.selectAllChildren(element);
  selection.collapseToEnd();
  return true;
}

async function append(tab, { selector, text }, call) {
  const { page } = tab;
  for (;;) {
    const element = await page.waitForSelector(selector, { state: 'visible', ...call.bounds() });
    try {
      await element.waitForElementState('editable', call.bounds());
      if (!await element.evaluate(focusAtEnd))
        throw new Refusal('element_not_found', `the element ${quoted(selector)} takes no text`, 'selector');
      return await page.keyboard.insertText(text);
    } catch (error) {
      // A new one may have taken its place.
      if (!/not attached|detached/.test(error.message) || call.isOver) throw error;
    } finally {
      element.dispose().catch(() => {});
    }
  }
}

export async function type(tab, params, call) {
  const { selector, text, delay_ms: delay = 0 } = params;
  const { page } = tab;
  try {
    if (params.clear) await page.fill(selector, delay > 0 ? '' : text, call.bounds());
    if (delay > 0) {
      if (!params.clear) await append(tab, { selector, text: '' }, call);
      await page.locator(selector).first().pressSequentially(text, { delay, ...call.bounds() });
    } else if (!params.clear) await append(tab, params, call);
    if (params.submit) await page.press(selector, 'Enter', call.bounds());
  } catch (error) {
    checkLeads(error, 'the text was typed', call);
    throw await elementFailure(tab, error, selector, call);
  }
  return params.submit ? settled(tab, call) : {}; // else it seldom leads anywhere
}
