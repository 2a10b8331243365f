// The pages by their names: at most so many at once.
import { Page } from './page.mjs';
import { ConsoleLog } from './console.mjs';
import { Refusal } from './failure.mjs';

const PAGES_MAX = 16;
const CLOSED_MAX = 1000;
const CLOSED = `it was closed, as the longest unused of ${PAGES_MAX}`;

export class Pages {
  #engine;
  #pages = new Map();
  #closed = new Set(); // names of those that had to make room, and that nobody asked for since

  constructor(engine) {
    this.#engine = engine;
  }

  /* The page of that name, made when there is none. Throws a Refusal where all are at work. */
  at(name) {
    let page = this.#pages.get(name);
    if (page) return page;
    if (this.#pages.size >= PAGES_MAX) this.#makeRoom();
    page = new Page(name, this.#engine, this.#closed.delete(name) ? CLOSED : null);
    this.#pages.set(name, page);
    return page;
  }

  /* What is known of a page, from memory: asks and makes nothing. */
  console(name, params) {
    const page = this.#pages.get(name);
    const { url = 'about:blank', title = '', log = new ConsoleLog() } = page ?? {};
    return { page: name, url: page?.tab?.page.url() ?? url, title, fresh: !page, ...log.read(params) };
  }

  /* The browser has ended. */
  lose(reason) {
    for (const page of this.#pages.values()) page.lose(reason);
  }

  #makeRoom() {
    const idle = [...this.#pages.values()].filter((page) => page.isIdle());
    if (idle.length === 0)
      throw new Refusal('too_many_requests', `all of the ${PAGES_MAX} pages are at work`);
    const oldest = idle.reduce((one, other) => (other.lastUsed < one.lastUsed ? other : one));
    this.#pages.delete(oldest.name);
    this.#closed.add(oldest.name);
    if (this.#closed.size > CLOSED_MAX) this.#closed.delete(this.#closed.values().next().value);
    process.stderr.write(`the page "${oldest.name}" is gone: ${CLOSED}\n`);
    oldest.close();
  }
}
