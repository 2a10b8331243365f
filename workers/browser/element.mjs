// Elements as calls name them, and why one could not be used.
import { Refusal, readError } from './failure.mjs';

const PROBE_MS = 300;
const QUOTED_MAX = 200;

export const quoted = (selector) =>
  `"${selector.length > QUOTED_MAX ? `${selector.slice(0, QUOTED_MAX)}…` : selector}"`;

// Of the library's own parser, of its engines in the page, and of the page's parser.
const BAD_SELECTOR = new RegExp([
  'while parsing', 'Unknown engine', 'InvalidSelectorError', 'is not a valid', 'engine expects', 'Malformed selector',
  'Unexpected (token|end|symbol)', 'Invalid regular expression', '^SyntaxError', 'selector cannot be empty',
  'Invalid frame in selector', 'must be a string',
].join('|'));

// Of elements that are there, and not what the call takes them for.
const UNFIT = /^(Element is |Input of type|Cannot type|Malformed value|Not an? )|not attached to the DOM/;

// "element is not visible", "<div> intercepts pointer events", "element was detached from the DOM, retrying".
const HINDRANCE = /^(element (is|was) |<.*intercepts|locator resolved to hidden)|outside of the viewport|^waiting for element/;

/* The last of what the library found in its way. */
const hindrance = (log) => log.findLast((line) => HINDRANCE.test(line) && !/is visible, enabled/.test(line));

/* What an error of the library about an element means. The call is given a little more time, to find out whether the
 * page still runs. */
export async function elementFailure(tab, error, selector, call) {
  if (error instanceof Refusal) return error;
  const { sentence, log } = readError(error);
  const [first] = sentence.split('\n');
  if (BAD_SELECTOR.test(first))
    return new Refusal('invalid_request', `the selector is not understood: ${first}`, 'selector');
  if (error.name === 'TimeoutError') {
    call.extend(PROBE_MS);
    await tab.cdp.send('Runtime.evaluate', { expression: '1' }); // if it does not react, the deadline is to tell that
    const why = hindrance(log);
    return new Refusal('element_not_found', `no element for ${quoted(selector)} could be used within ` +
      `timeout_ms (${call.timeoutMs})${why ? `: ${why}` : ''}`, 'selector');
  }
  if (UNFIT.test(first))
    return new Refusal('element_not_found', `the element ${quoted(selector)} cannot be used: ${first}`, 'selector');
  return error;
}
