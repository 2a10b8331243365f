// What a page had to say, as GET /browser/console tells it: the newest entries, in a ring that never waits for anybody.

const ENTRIES_MAX = 1000;
const TEXT_MAX_BYTES = 8 * 1024;
const URL_MAX = 2048;
const LEVELS = ['debug', 'info', 'warning', 'error'];

/* Whole characters of it. */
function cut(text) {
  const bytes = Buffer.from(text.slice(0, TEXT_MAX_BYTES));
  if (bytes.length <= TEXT_MAX_BYTES && text.length <= TEXT_MAX_BYTES) return text;
  let end = TEXT_MAX_BYTES - '…'.length * 3;
  while ((bytes[end] & 0xc0) === 0x80) end -= 1;
  return `${bytes.toString('utf8', 0, end)}…`;
}

export class ConsoleLog {
  #ring = new Array(ENTRIES_MAX);
  #last = 0; // seq of the newest one; they count from 1, for the page's life
  #forgotten = 0; // seq of the last one that was cleared

  /* `level` is debug, info, warning or error; `line` counts from 1; both `url` and `line` may be left out. */
  add(kind, level, text, url, line = null) {
    this.#last += 1;
    this.#ring[this.#last % ENTRIES_MAX] = {
      seq: this.#last, time: new Date().toISOString(), kind, level, text: cut(String(text)), line,
      url: url ? url.slice(0, URL_MAX) : null,
    };
  }

  /* The oldest `limit` entries behind `since` of at least that level. `next` is the `since` that goes on from there,
   * `dropped` counts what has been behind `since` and made room since then. `clear` forgets all up to `next`. */
  read({ since = 0, level = 'debug', limit = 100, clear = false }) {
    const least = LEVELS.indexOf(level);
    const begin = Math.max(this.#forgotten, Math.min(since, this.#last));
    const oldest = Math.max(begin, this.#last - ENTRIES_MAX);
    const entries = [];
    let next = oldest;
    while (next < this.#last && entries.length < limit) {
      next += 1;
      const entry = this.#ring[next % ENTRIES_MAX];
      if (LEVELS.indexOf(entry.level) >= least) entries.push(entry);
    }
    if (clear) {
      for (let seq = oldest + 1; seq <= next; seq += 1) this.#ring[seq % ENTRIES_MAX] = undefined;
      this.#forgotten = next;
    }
    return { entries, next, dropped: oldest - begin };
  }
}
