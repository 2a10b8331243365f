// One call of the channel: its deadline, and its one answer.
import { Refusal, plain } from './failure.mjs';

// An operation that ends itself at the deadline tells more than we could; it is let speak first.
const LAST_WORD_MS = 50;

export class Call {
  /* What it waits for, in words: an answer at the deadline says so. */
  waitsFor = 'an earlier call of this page';
  #channel;
  #end;
  #timer;
  #stop = new AbortController();

  constructor(channel, { id, method, params }) {
    this.#channel = channel;
    this.id = id;
    this.method = method;
    this.params = params;
    this.timeoutMs = params.timeout_ms;
    this.until = performance.now() + this.timeoutMs;
    /* Resolves when it is over, by whom ever, to whether it was answered; else it was refused. */
    this.over = new Promise((resolve) => { this.#end = resolve; });
    this.isOver = false;
    this.isLate = false; // it was refused because its time was over
    this.#wait(this.timeoutMs + LAST_WORD_MS);
  }

  /* Aborted when the call is over. */
  get signal() {
    return this.#stop.signal;
  }

  /* For the library, to which 0 means for ever. */
  left = () => Math.max(1, this.until - performance.now());

  /* What the library is told of both. */
  bounds = () => ({ timeout: this.left(), signal: this.signal });

  /* The operation has ended at its deadline, and what it says of that is being worked out. */
  extend(ms) {
    clearTimeout(this.#timer);
    if (!this.isOver) this.#wait(ms);
  }

  answer(result) {
    if (this.#finish(true)) this.#channel.answer(this.id, result);
  }

  refuse(error) {
    if (this.isOver) return;
    this.isLate = error.code === 'upstream_timeout';
    this.#finish(false);
    if (error instanceof Refusal) {
      const { code, field, message } = error;
      this.#channel.refuse(this.id, -32000, message, { code, ...(field && { field }) });
    } else {
      process.stderr.write(`${this.method}: ${error?.stack ?? error}\n`);
      const [message] = plain(error).split('\n');
      this.#channel.refuse(this.id, -32000, `${this.method} failed: ${message}`, { code: 'internal_error' });
    }
  }

  #wait(ms) {
    this.#timer = setTimeout(() => {
      // Both timers may be late, and then the operation's is not heard of before the next turn of the loop.
      this.#timer = setTimeout(() => this.refuse(this.tooLate()), 5);
    }, ms);
  }

  /* What it is refused with at its deadline. */
  tooLate() {
    return new Refusal('upstream_timeout',
      `not done within timeout_ms (${this.timeoutMs}): still waiting for ${this.waitsFor}`);
  }

  #finish(isAnswered) {
    if (this.isOver) return false;
    this.isOver = true;
    clearTimeout(this.#timer);
    this.#end(isAnswered);
    this.#stop.abort();
    return true;
  }
}
