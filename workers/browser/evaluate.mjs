// POST /browser/evaluate: a script in the page, and its value as JSON.
import { Refusal } from './failure.mjs';
import { askTitle } from './title.mjs';
import { take } from './value.mjs';

const RESULT_MAX_BYTES = 8 * 1024 * 1024;
const DEPTH_MAX = 48; // the server's parser stops at 64
const MESSAGE_MAX = 8192;

const AsyncFunction = (async () => {}).constructor;
const TAKE = take.toString();
const HEAD = `(${TAKE})(async () => (\n`;
const LINES_BEFORE = HEAD.split('\n').length - 1;
const GROUP = 'abxd';

export const waitsFor = () => 'the expression to end';

function compiles(body) {
  try {
    return Boolean(new AsyncFunction(body)); // which is not called
  } catch {
    return false;
  }
}

/* The text as one expression, where it is one: "{a: 1}" is an object then, as in a browser's console. */
function asExpression(text) {
  const bare = text.trim().replace(/[;\s]+$/, '');
  const isOne = bare !== '' && compiles(`return (\n${bare}\n)`) && compiles(`return [\n${bare}\n]`);
  return isOne ? bare : null;
}

/* A literal as scripts have it: in JSON, "__proto__" is a member like others. */
const literal = (value) => JSON.stringify(value).replaceAll('"__proto__":', '["__proto__"]:');

/* One message there and back: the value is made JSON where it is, so that one too long is not sent. */
function runExpression(cdp, bare, params, call) {
  const rest = [literal(params.arg ?? null), DEPTH_MAX, RESULT_MAX_BYTES];
  return cdp.send('Runtime.evaluate', {
    expression: `${HEAD}${bare}\n), ${rest.join(', ')})`,
    awaitPromise: true, returnByValue: true, userGesture: true, timeout: call.left(),
  });
}

/* Statements, whose value only the inspector knows; it then hands it over, unless it is one of the simple ones. */
async function runScript(cdp, text, params, call) {
  const evaluated = await cdp.send('Runtime.evaluate', {
    expression: text, replMode: true, awaitPromise: true, userGesture: true, objectGroup: GROUP, timeout: call.left(),
  });
  const { result: remote } = evaluated;
  if (evaluated.exceptionDetails || !remote.objectId) return evaluated;
  const rest = [params.arg ?? null, DEPTH_MAX, RESULT_MAX_BYTES];
  try {
    return await cdp.send('Runtime.callFunctionOn', {
      objectId: remote.objectId,
      functionDeclaration: `function (a, b, c) { 'use strict'; return (${TAKE})(() => this, a, b, c); }`,
      arguments: rest.map((value) => ({ value })),
      awaitPromise: true, returnByValue: true, userGesture: true,
    });
  } finally {
    cdp.send('Runtime.releaseObjectGroup', { objectGroup: GROUP }).catch(() => {});
  }
}

/* Of an error, its name and message, and the line in the expression; of another value, what it is. */
function thrown({ exception, text }, linesBefore) {
  if (!exception) return text;
  const { description, value, type, subtype } = exception;
  if (subtype !== 'error') {
    const shown = type === 'string' ? value : JSON.stringify(value);
    return `Uncaught ${description ?? shown ?? type}`;
  }
  const [message] = description.split(/\n {4}at /);
  const line = Number(/\n {4}at .*<anonymous>:(\d+):\d+/.exec(description)?.[1]) - linesBefore;
  return line > 0 ? `${message} (line ${line})` : message;
}

function javascriptError(text) {
  const shown = text.length > MESSAGE_MAX ? `${text.slice(0, MESSAGE_MAX)}…` : text;
  return new Refusal('javascript_error', shown, 'expression');
}

/* What an error of the inspector itself means; null: something else. */
function interruption({ message }, call) {
  if (/Internal error|Execution was terminated/.test(message) && call.left() <= 1) return call.tooLate();
  if (/Promise was collected/.test(message)) return javascriptError('the promise can never settle');
  if (/Inspected target navigated|context was destroyed|Cannot find context/.test(message))
    return javascriptError('the page went elsewhere before the expression had ended');
  if (/Object reference chain is too long/.test(message)) return tooLarge();
  return null;
}

const tooLarge = () => new Refusal('payload_too_large', 'the result is longer than 8 MiB of JSON');

function valueOf({ type, subtype, value, unserializableValue }) {
  if (type === 'object' && value !== null) { // take's
    const [itsType, result, isTooLong] = value;
    if (isTooLong) throw tooLarge();
    return { result, type: itsType };
  }
  if (type === 'bigint') return { result: unserializableValue.slice(0, -1), type };
  return { result: value ?? (unserializableValue === '-0' ? 0 : null), type: subtype === 'null' ? 'null' : type };
}

export async function evaluate(tab, params, call) {
  const { cdp } = tab;
  const bare = asExpression(params.expression);
  const sent = bare === null ? runScript(cdp, params.expression, params, call) : runExpression(cdp, bare, params, call);
  // Asked for at once, it takes no time of its own.
  const title = askTitle(tab);
  let answer;
  try {
    answer = await sent;
  } catch (error) {
    throw interruption(error, call) ?? error;
  }
  const { exceptionDetails, result: remote } = answer;
  if (exceptionDetails) {
    const text = thrown(exceptionDetails, bare === null ? 0 : LINES_BEFORE);
    throw interruption({ message: text }, call) ?? javascriptError(text);
  }
  const own = valueOf(remote);
  const isLong = typeof own.result === 'string' || typeof own.result === 'object';
  if (isLong && Buffer.byteLength(JSON.stringify(own.result)) > RESULT_MAX_BYTES) throw tooLarge();
  return { ...own, title };
}
