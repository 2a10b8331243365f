// One named page: makes its tab when it is needed, takes one call at a time, and gets back what a call left hanging.
import { setTimeout as sleep } from 'node:timers/promises';
import { ConsoleLog } from './console.mjs';
import { watch } from './events.mjs';
import { Refusal, isLoss } from './failure.mjs';
import { Tab } from './tab.mjs';
import { askTitle } from './title.mjs';
import { isAllowed } from './urls.mjs';

export const BROWSER_ENDED = 'the browser ended';

const DEAF = 'it did not react any more, and was closed';
const EVENTS_MS = 50;
const TITLE_MAX_MS = 1000;
const OPEN_MAX_MS = 30000;
// Of getting back, in order: what is idle answers at once; what runs is ended; a page is closed; all is ended.
const IDLE_MS = 150;
const ENDED_MS = 500;
const CLOSED_MS = 700;

const isTrue = (promise, ms) => Promise.race([promise.then(() => true, () => false), sleep(ms, false)]);

/* One that computes has no time to tell its title, which is no reason to keep back the rest. */
function bounded(asked, call, otherwise) {
  const late = sleep(Math.min(TITLE_MAX_MS, call.left()), otherwise, { signal: call.signal }).catch(() => otherwise);
  return Promise.race([asked, late]);
}

export class Page {
  url = 'about:blank'; // these two as last known
  title = '';
  lastUsed = 0;
  tab = null;
  #engine;
  #log = new ConsoleLog();
  #lost; // why there is no tab any more, until somebody was told
  #opening = null;
  #untouched = false;
  #last = Promise.resolve();
  #waiting = new Set(); // calls, with the running one

  /* `lost`: why an earlier page of this name is gone, if it is. */
  constructor(name, engine, lost = null) {
    this.name = name;
    this.#engine = engine;
    this.#lost = lost;
  }

  get log() {
    return this.#log;
  }

  isIdle() {
    return this.#waiting.size === 0;
  }

  /* Answers the call when its turn has come, or before where it ends otherwise. */
  run(call, operation) {
    this.#waiting.add(call);
    this.lastUsed = performance.now();
    this.#last = this.#last.then(() => this.#turn(call, operation)).finally(() => {
      this.#waiting.delete(call);
      this.lastUsed = performance.now();
    });
  }

  /* The tab is gone. Those who asked something of it are told now, else the next one. */
  lose(reason) {
    if (!this.tab) return;
    const { page } = this.tab;
    this.tab = null;
    page.close().catch(() => {});
    this.#log.add('crash', 'error', `the page is gone: ${reason}`, this.url, null);
    this.#lost = reason;
    for (const call of this.#waiting) {
      if (call.isOver) continue;
      if (call !== this.running && call.method === 'navigate') continue;
      this.#lost = null;
      call.refuse(this.#goneBecause(reason));
    }
  }

  /* Resolves to whether it was closed in time. */
  async close() {
    const { page } = this.tab ?? {};
    this.tab = null;
    return page ? isTrue(page.close(), CLOSED_MS) : true;
  }

  #goneBecause(reason) {
    return new Refusal('browser_crashed', `the page "${this.name}" is gone: ${reason}; navigate again`);
  }

  async #turn(call, operation) {
    if (call.isOver) return;
    this.running = call;
    let isDone = false;
    const work = this.#work(call, operation).then((answer) => call.answer(answer), (error) => this.#refuse(call, error))
      .finally(() => { isDone = true; });
    await Promise.race([work, call.over]);
    if (!isDone || call.isLate) await this.#getBack(call, operation, work);
    this.running = null;
  }

  async #work(call, operation) {
    const { params } = call;
    if (this.#lost !== null) {
      const reason = this.#lost;
      this.#lost = null;
      if (call.method !== 'navigate') throw this.#goneBecause(reason);
    }
    if (this.tab && operation.canUse && !await operation.canUse(this.tab, call)) await this.#giveUp(DEAF);
    if (call.isOver) return null;
    if (!this.tab) {
      call.waitsFor = 'the browser to start';
      this.#opening ??= this.#open(params.parts);
      await this.#opening;
      if (call.isOver) return null;
    }
    const { tab } = this;
    const fresh = this.#untouched;
    this.#untouched = false;
    call.waitsFor = operation.waitsFor(params);
    const own = await operation.run(tab, params, call);
    const title = await this.#title(tab, call, own.title ?? askTitle(tab));
    await this.#leaveForbidden(tab);
    this.url = tab.page.url();
    this.title = title;
    return { page: this.name, url: this.url, fresh, ...own, title };
  }

  async #open(parts) {
    const opening = { isDone: false };
    sleep(OPEN_MAX_MS, null, { ref: false }).then(() => { if (!opening.isDone) this.#engine.kill(); });
    try {
      const { page, context, proxy } = await this.#engine.newPage(parts);
      const tab = new Tab({ name: this.name, page, log: this.#log, proxy, cdp: await context.newCDPSession(page) });
      page.on('crash', () => { if (this.tab === tab) this.lose('its renderer ended'); });
      page.on('close', () => this.#end(tab));
      watch(tab, context);
      this.tab = tab;
      this.#untouched = true;
    } finally {
      opening.isDone = true;
      this.#opening = null;
    }
  }

  /* Of the document that is there in the end, which may have come while we asked. */
  async #title(tab, call, asked) {
    const url = tab.page.url();
    const title = await bounded(asked, call, this.title);
    if (tab.page.url() === url || call.isOver) return title;
    const timeout = Math.min(TITLE_MAX_MS, call.left());
    await tab.page.waitForLoadState('domcontentloaded', { timeout }).catch(() => {});
    return bounded(askTitle(tab), call, '');
  }

  /* Pages can go where calls may not send them. */
  async #leaveForbidden(tab) {
    const url = tab.page.url();
    if (isAllowed(url) || url.startsWith('chrome-error:')) return;
    const text = `the page went to ${url.slice(0, 200)}, which is not allowed`;
    this.#log.add('navigation_refused', 'error', text, url, null);
    await tab.page.goto('about:blank', { timeout: CLOSED_MS });
  }

  /* The tab says that it is gone; that the browser is, we may hear a little later. */
  #end(tab) {
    tab.ending ??= sleep(EVENTS_MS).then(() => {
      if (this.tab === tab) this.lose(tab.page.context().browser().isConnected() ? 'it closed itself' : BROWSER_ENDED);
    });
    return tab.ending;
  }

  async #refuse(call, error) {
    if (isLoss(error) && !call.isOver) {
      if (this.tab) await this.#end(this.tab); // refuses the call too
      call.refuse(this.#goneBecause(BROWSER_ENDED));
    } else call.refuse(error);
  }

  /* The call has been answered, and what it began goes on. */
  async #getBack(call, operation, work) {
    if (this.#opening) return void await this.#opening.catch(() => {});
    const { tab } = this;
    if (!tab) return;
    const answers = () => tab.cdp.send('Runtime.evaluate', { expression: '1' });
    // While a document is asked for, the inspector keeps all that is sent to the page.
    const stop = () => tab.cdp.send('Page.stopLoading').catch(() => {});
    if (call.method === 'navigate') stop();
    let reason = `it was closed to stop a ${call.method}`; // as with a library that knows no signals
    if (!await isTrue(answers(), IDLE_MS)) {
      if (this.tab !== tab) return;
      stop();
      tab.cdp.send('Runtime.terminateExecution').catch(() => {});
      if (await isTrue(answers(), ENDED_MS)) return;
      reason = DEAF;
    } else if (!operation.mayLead || await isTrue(work, ENDED_MS)) return;
    if (this.tab !== tab) return;
    this.#lost = reason;
    await this.#giveUp(reason);
  }

  async #giveUp(reason) {
    this.#log.add('crash', 'error', `the page is gone: ${reason}`, this.url, null);
    if (!await this.close()) this.#engine.kill();
  }
}
