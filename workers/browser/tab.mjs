// A tab of the browser as operations get it, and where it is on its way.

const STARTS_MS = 300; // a document that a page asked for is asked of the network by then, if at all

export class Tab {
  failed = null; // the newest request for a document of the main frame that failed
  shown = 0; // how many documents there have been
  dialogs = 0; // of the document that is there
  // Another document was asked for, {over, end()}: until it comes, nothing that is asked of the page is answered.
  #leaving = null;

  /* `page` and `cdp` are the library's, `log` is the page's console, `proxy` what it goes through. */
  constructor({ name, page, cdp, log, proxy }) {
    Object.assign(this, { name, page, cdp, log, proxy });
    this.#follow();
  }

  /* Resolves when no document is awaited any more: it has come, or will not. */
  arrival() {
    return this.#leaving?.over ?? Promise.resolve();
  }

  get isLeaving() {
    return this.#leaving !== null;
  }

  #leave() {
    if (this.#leaving) return;
    this.#leaving = {};
    this.#leaving.over = new Promise((resolve) => { this.#leaving.end = resolve; });
  }

  #stay() {
    this.#leaving?.end();
    this.#leaving = null;
  }

  #follow() {
    const { page, cdp } = this;
    page.on('requestfailed', (request) => {
      if (!request.isNavigationRequest()) return;
      try {
        if (request.frame() === page.mainFrame()) this.failed = request;
      } catch {} // of a frame that is not there yet
    });
    page.on('framenavigated', (frame) => {
      if (frame.parentFrame()) return;
      this.shown += 1;
      this.dialogs = 0;
      this.#stay();
    });
    page.on('dialog', () => { this.dialogs += 1; });
    let own; // the main frame, by the inspector's name for it
    cdp.send('Target.getTargetInfo').then(({ targetInfo }) => { own = targetInfo.targetId; }, () => {});
    // Told by the renderer, and so before whatever it answers next; that the network is asked, we hear of the browser.
    let starts;
    cdp.on('Page.frameRequestedNavigation', ({ frameId, disposition }) => {
      if (frameId !== own || disposition !== 'currentTab') return;
      this.#leave();
      clearTimeout(starts);
      starts = setTimeout(() => this.#stay(), STARTS_MS);
    });
    cdp.on('Page.frameStartedNavigating', ({ frameId, navigationType }) => {
      if (frameId !== own || /sameDocument/i.test(navigationType)) return;
      clearTimeout(starts);
      this.#leave();
    });
    cdp.on('Page.frameStoppedLoading', ({ frameId }) => { if (frameId === own) this.#stay(); });
    cdp.send('Page.enable').catch(() => {});
  }
}
