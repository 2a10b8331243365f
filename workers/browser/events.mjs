// What happens in a page outside of calls: it goes to the page's console, and nothing of it waits for an answer.

// Past it, a page's messages would keep the worker from all else: the library makes handles for every argument.
const MESSAGES_MAX = 500; // in one PERIOD_MS
const PERIOD_MS = 1000;

const LEVELS = { debug: 'debug', warning: 'warning', error: 'error', assert: 'error' };

const short = (url) => (url.length > 500 ? `${url.slice(0, 500)}…` : url);

// Told as request_failed too, which says what was asked for.
const isRequest = (text) => text.startsWith('Failed to load resource: net::');

function addMessage(log, message) {
  const text = message.text();
  if (isRequest(text)) return;
  const { url, lineNumber } = message.location();
  log.add('console', LEVELS[message.type()] ?? 'info', text, url, url ? lineNumber + 1 : null);
}

/* Keeps the console's listener away from a page that says too much; of what it says meanwhile, the last lines are
 * kept by the library, and got when the page is listened to again. */
function listenToConsole({ page, log }) {
  let heard = 0;
  let newest = 0; // when the last message that was heard was written
  const hear = (message) => {
    heard += 1;
    newest = message.timestamp();
    addMessage(log, message);
    if (heard === MESSAGES_MAX) page.off('console', hear);
  };
  const resume = async () => {
    const missed = (await page.consoleMessages({ filter: 'all' })).filter((message) => message.timestamp() > newest);
    log.add('console', 'warning', `more than ${MESSAGES_MAX} messages in a second: of the next ones, only the last ${missed.length} were kept`);
    for (const message of missed) addMessage(log, message);
    newest = missed.at(-1)?.timestamp() ?? newest;
    page.on('console', hear);
  };
  const timer = setInterval(() => {
    const isAway = heard >= MESSAGES_MAX;
    heard = 0;
    if (isAway) resume().catch(() => {});
  }, PERIOD_MS);
  timer.unref();
  page.on('console', hear);
  page.once('close', () => clearInterval(timer));
}

/* "at name (url:line:column)" or "at url:line:column" */
function placeOf(stack) {
  const [, url, line] = /^\s+at (?:.*\()?(\S+?):(\d+):\d+\)?$/m.exec(stack ?? '') ?? [];
  return url ? { url, line: Number(line) } : { url: '', line: null };
}

function addError(log, error) {
  const { url, line } = placeOf(error.stack);
  const name = error.name && error.name !== 'Error' ? `${error.name}: ` : '';
  log.add('pageerror', 'error', `${name}${error.message}`, url, line);
}

const destination = ({ hostname, port, protocol }) => [hostname, Number(port || (/s:$/.test(protocol) ? 443 : 80))];

/* The proxy knows better than Chromium what it was that failed. */
function addFailure({ log, proxy }, request) {
  let why = request.failure()?.errorText ?? 'failed';
  // Given up by the page itself, or by its going elsewhere.
  const level = why === 'net::ERR_ABORTED' ? 'debug' : 'error';
  if (/^(http|ws)s?:/.test(request.url())) {
    const fault = proxy.fault(...destination(new URL(request.url())));
    if (fault) why = fault.reason;
  }
  log.add('request_failed', level, `${request.method()} ${short(request.url())}: ${why}`, request.url());
}

function answerDialog(log, dialog) {
  const isLeaving = dialog.type() === 'beforeunload';
  const answer = isLeaving ? dialog.accept() : dialog.dismiss();
  answer.catch(() => {}); // the page may be gone
  log.add('dialog', 'info', `${dialog.type()}${dialog.message() && `: ${dialog.message()}`} (${isLeaving ? 'accepted' : 'dismissed'})`);
}

/* Puts what the tab's page does into the tab's log. */
export function watch(tab) {
  const { page, log } = tab;
  listenToConsole(tab);
  page.on('pageerror', (error) => addError(log, error));
  page.on('requestfailed', (request) => addFailure(tab, request));
  page.on('dialog', (dialog) => answerDialog(log, dialog));
  page.on('popup', (popup) => log.add('popup', 'warning', `a window was opened, and closed: ${short(popup.url())}`, popup.url()));
  page.on('download', (download) => {
    log.add('download', 'warning', `a download was refused: ${download.suggestedFilename()} from ${short(download.url())}`, download.url());
    download.cancel().catch(() => {});
  });
}
