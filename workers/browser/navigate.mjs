// POST /browser/navigate, and what became of the hops on its way.
import { setTimeout as sleep } from 'node:timers/promises';
import { Refusal, isLoss, readError } from './failure.mjs';
import { checkUrl } from './urls.mjs';

const AGAIN_MS = 20;
const ANSWERS_MS = 1000;

// What Chromium calls them; where the proxy knows better, its words are taken.
const REASONS = {
  ERR_NAME_NOT_RESOLVED: 'its name is not known',
  ERR_CONNECTION_REFUSED: 'the connection was refused',
  ERR_CONNECTION_RESET: 'the connection was reset',
  ERR_CONNECTION_CLOSED: 'the connection was closed',
  ERR_CONNECTION_TIMED_OUT: 'it did not answer',
  ERR_TIMED_OUT: 'it did not answer',
  ERR_ADDRESS_UNREACHABLE: 'its address cannot be reached',
  ERR_EMPTY_RESPONSE: 'the connection was closed without an answer',
  ERR_INVALID_HTTP_RESPONSE: 'the answer is not HTTP',
  ERR_TUNNEL_CONNECTION_FAILED: 'it cannot be connected to',
  ERR_PROXY_CONNECTION_FAILED: 'the worker\'s proxy does not answer',
  ERR_TOO_MANY_REDIRECTS: 'it redirects too often',
  ERR_UNSAFE_PORT: 'browsers refuse that port',
  ERR_BLOCKED_BY_CLIENT: 'the browser refused it',
  ERR_BLOCKED_BY_RESPONSE: 'the answer forbids to be shown',
  ERR_RESPONSE_HEADERS_TRUNCATED: 'the answer broke off',
  ERR_CONTENT_LENGTH_MISMATCH: 'the answer broke off',
  ERR_INCOMPLETE_CHUNKED_ENCODING: 'the answer broke off',
  ERR_CERT_AUTHORITY_INVALID: 'its certificate is not of an authority that is trusted',
  ERR_CERT_COMMON_NAME_INVALID: 'its certificate is for another name',
  ERR_CERT_DATE_INVALID: 'its certificate has expired, or is not valid yet',
  ERR_SSL_PROTOCOL_ERROR: 'it does not speak TLS',
  ERR_SSL_VERSION_OR_CIPHER_MISMATCH: 'no version of TLS is common',
};

// Where it redirects to; Chromium does not tell.
const FORBIDDEN = /^ERR_(UNSAFE_REDIRECT|UNKNOWN_URL_SCHEME|DISALLOWED_URL_SCHEME)$/;
const ERROR_PAGE_MAX_MS = 250;

/* The port that the proxy was asked for. */
const portOf = (url) => Number(url.port || (url.protocol === 'https:' || url.protocol === 'wss:' ? 443 : 80));

function failure(tab, error, wanted) {
  const { sentence } = readError(error);
  const hop = new URL(tab.failed?.url() ?? wanted);
  const fault = hop.host ? tab.proxy.fault(hop.hostname, portOf(hop)) : undefined;
  if (fault?.refused) return new Refusal('url_not_allowed', fault.reason, 'url');
  const place = hop.href === wanted ? hop.href : `${hop.href}, to which ${wanted} redirects,`;
  const shown = place.slice(0, 1000);
  if (/Download is starting/.test(sentence))
    return new Refusal('navigation_failed', `${shown} is a download, not a page`, 'url');
  const [, code] = /net::(ERR_\w+)/.exec(sentence) ?? [];
  if (code === 'ERR_ABORTED')
    return new Refusal('navigation_failed', `${shown} is no page: it answered without content`, 'url');
  if (FORBIDDEN.test(code))
    return new Refusal('url_not_allowed', `${shown} redirects to an address of a kind that is not allowed`, 'url');
  if (code) {
    const reason = fault?.reason ?? (REASONS[code] ? `${REASONS[code]} (${code})` : code);
    return new Refusal('navigation_failed', `${shown} could not be loaded: ${reason}`, 'url');
  }
  return new Refusal('navigation_failed', `${shown} could not be loaded: ${sentence}`, 'url');
}

/* Chromium shows a page of its own then, a little later: it would come in the way of the next call. */
async function errorPage(tab, shown) {
  const until = performance.now() + ERROR_PAGE_MAX_MS;
  while (tab.shown === shown && performance.now() < until) await sleep(5);
}

async function go(tab, url, params, call) {
  for (let tries = 0; ; tries += 1) {
    tab.failed = null;
    const { shown } = tab;
    try {
      return await tab.page.goto(url, { waitUntil: params.wait_until ?? 'load', ...call.bounds() });
    } catch (error) {
      if (call.isOver) throw error;
      const { sentence } = readError(error);
      // Where an earlier one, or one of the page's own, comes in between, the later one may yet be ours.
      if (/interrupted by another navigation/.test(sentence)) {
        await sleep(AGAIN_MS * tries);
        continue;
      }
      // As when the browser's network process ends.
      if (/ERR_ABORTED/.test(sentence)) {
        if (tries === 0 && !await tab.failed?.response()) continue;
      } else if (/net::/.test(sentence)) await errorPage(tab, shown);
      // An error status without a body: Chromium would show a page of its own.
      if (/ERR_HTTP_RESPONSE_CODE_FAILURE/.test(sentence)) {
        const response = await tab.failed?.response();
        if (response) return response;
      }
      if (error.name === 'TimeoutError') throw call.tooLate();
      throw isLoss(error) ? error : failure(tab, error, url);
    }
  }
}

/* Of a response, the answers that led to it, the first one first. */
async function redirectsTo(response) {
  const hops = [];
  for (let request = response?.request(); (request = request?.redirectedFrom());) hops.unshift(request);
  return Promise.all(hops.map(async (request) => ({
    url: request.url(), status: (await request.response())?.status() ?? null,
  })));
}

const SILENCE = 'for (const name of ["alert", "confirm", "prompt", "print"]) window[name] = () => {}';

/* Whether the tab can be led elsewhere: a document that computes does not let the next one come. Neither does a dialog
 * that opens meanwhile, which nobody can answer then: a document that has shown some shows no more. */
export async function canBeLeft(tab, call) {
  if (tab.isLeaving) return true; // it answers nothing then
  const asked = tab.cdp.send('Runtime.evaluate', { expression: tab.dialogs > 0 ? SILENCE : '1' });
  const late = sleep(Math.min(ANSWERS_MS, call.left() / 2), false, { signal: call.signal });
  return Promise.race([asked.then(() => true), late]).catch(() => false);
}

export const waitsFor = ({ url, wait_until: until = 'load' }) =>
  `${until === 'load' ? 'all of ' : ''}${String(url).slice(0, 200)}${until === 'load' ? ' to load' : ` (${until})`}`;

export async function navigate(tab, params, call) {
  const url = checkUrl(params.url).href;
  const began = performance.now();
  if (params.viewport) await tab.page.setViewportSize(params.viewport);
  const response = await go(tab, url, params, call);
  return {
    status: response?.status() ?? null,
    redirects: await redirectsTo(response),
    duration_ms: Math.round(performance.now() - began),
  };
}
