// What calls are refused with, and what the library's errors mean to whoever called.

/* `message` is a sentence for the user; `field` names the parameter that is at fault. */
export class Refusal extends Error {
  constructor(code, message, field) {
    super(message);
    this.code = code;
    this.field = field;
  }
}

/* The page's renderer, or the whole browser, ended while something was asked of it. */
export const isLoss = (error) => !(error instanceof Refusal) &&
  /Target (closed|crashed)|Page crashed|(browser|page|context) has been closed/i.test(error?.message);

/* An error's message as text without colours. */
export const plain = (error) => String(error?.message ?? error).replace(/\x1b\[[0-9;]*m/g, '');

/* "page.click: Timeout 30000ms exceeded.\nCall log:\n  - …": the sentence, and the log as a list without its marks. */
export function readError(error) {
  const text = plain(error);
  const [head, log = ''] = text.split(/\n\s*Call log:\n?/);
  return {
    sentence: head.replace(/^[\w.]+: /, '').replace(/^Error: /, '').trim(),
    log: log.split('\n').map((line) => line.replace(/^[\s\d]*[-×]?\s*/, '').trim()).filter(Boolean),
  };
}
