// Where a call may lead a page. Hosts are the proxy's business: it sees every hop.
import { Refusal } from './failure.mjs';

const SCHEMES = new Set(['http:', 'https:', 'data:']);

/* Whether a page may stand at this address. */
export function isAllowed(url) {
  return url === 'about:blank' || SCHEMES.has(url.slice(0, url.indexOf(':') + 1));
}

/* The URL in its usual form. */
export function checkUrl(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    throw new Refusal('invalid_request', 'a whole URL is wanted, such as http://localhost:3000/', 'url');
  }
  if (!isAllowed(url.href))
    throw new Refusal('url_not_allowed', `only http, https, data and about:blank are allowed, not ${url.protocol}`, 'url');
  return url;
}
