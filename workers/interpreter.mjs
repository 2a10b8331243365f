// The JavaScript interpreter of POST /code/execute: one process is one context. abxd starts it; JSON-RPC in lines comes
// over descriptor 3.
//
// Cells run on the main thread, in its global scope, as in a browser's console: Runtime.evaluate with replMode gives
// top-level await, declarations that may be repeated, and the value of the last expression. The channel is served by a
// second thread (interpreter_channel.mjs), so that a cell that computes for ever can be ended: it asks the main thread's
// inspector to terminate what runs. The session that evaluates must be one of the main thread itself: messages of another
// thread's session wait while one of them is being worked on.
import { createRequire, builtinModules, syncBuiltinESMExports } from 'node:module';
import { Session } from 'node:inspector';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import path from 'node:path';
import util from 'node:util';
import vm from 'node:vm';

const nodeRequire = createRequire(import.meta.url);

/* What node calls deprecated or experimental here is no news for whoever wrote the cell. */
function unwarned(work) {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return work();
  } finally {
    process.emitWarning = emitWarning;
  }
}

// When a timer's callback is terminated, node finds its stack of asynchronous ids out of step and aborts the process;
// the check has a switch (--no-force-async-hooks-checks), which can be turned here too.
unwarned(() => {
  const { async_hook_fields: fields, constants } = process.binding('async_wrap');
  fields[constants.kCheck] = 0;
});

const channel = new Worker(new URL('interpreter_channel.mjs', import.meta.url), {
  // acorn, which node has inside, tells where a cell imports and declares
  execArgv: ['--expose-internals', '--no-warnings'],
});
channel.on('error', (error) => {
  process.stderr.write(`the channel of the interpreter failed: ${error?.stack}\n`);
  process.exit(70);
});

const session = new Session();
session.connect();
let cell = null; // {id, timers}: what runs, or was run last
const { parse, stringify } = JSON; // cells may put something else in its place, and in that of the next one
const OurPromise = Promise;

// --- values

const RESULT_MAX_BYTES = 8 * 1024 * 1024;
const CELL_MAX_BYTES = 16 * 1024 * 1024;
const CELL_MAX_RESULTS = 1000;
const JSON_MAX_BYTES = 256 * 1024; // a value is shown as application/json too, as long as that is short
const DEPTH_MAX = 48; // of JSON in a result: the server's parser stops at 64

/* The nesting of a value that came out of JSON.parse; counts no further than DEPTH_MAX + 1. */
function depthOf(value, above = 0) {
  if (value === null || typeof value !== 'object' || above > DEPTH_MAX) return above;
  let deepest = above + 1;
  for (const key of Object.keys(value)) deepest = Math.max(deepest, depthOf(value[key], above + 1));
  return deepest;
}

function cut(value, depth) {
  if (value === null || typeof value !== 'object') return value;
  if (depth === 0) return '…';
  if (Array.isArray(value)) return Array.from(value, (item) => cut(item, depth - 1));
  return Object.fromEntries(Object.keys(value).map((key) => [key, cut(value[key], depth - 1)]));
}

function encode(data) {
  const text = stringify(data);
  const copy = /[[{](?=.*[[{])/s.test(text.slice(1)) ? parse(text) : undefined;
  return copy && depthOf(copy) > DEPTH_MAX ? stringify(cut(copy, DEPTH_MAX)) : text;
}

function sendResult(data) {
  if (!cell || cell.over) return;
  const text = encode(data);
  const bytes = Buffer.byteLength(text);
  if (bytes > RESULT_MAX_BYTES || cell.bytes + bytes > CELL_MAX_BYTES || cell.results >= CELL_MAX_RESULTS) {
    cell.truncated = true;
    return;
  }
  cell.bytes += bytes;
  cell.results += 1;
  channel.postMessage({ kind: 'result', id: cell.id, data: text });
}

const isPlain = (value) => {
  if (value === null || typeof value !== 'object' || util.types.isProxy(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === null || prototype === Object.prototype;
};

function bundleOf(value) {
  const data = { 'text/plain': util.inspect(value, { depth: 4, maxStringLength: RESULT_MAX_BYTES }) };
  if (isPlain(value)) {
    try {
      const text = stringify(value);
      const copy = text !== undefined && text.length <= JSON_MAX_BYTES ? parse(text) : undefined;
      if (depthOf(copy) < DEPTH_MAX && util.isDeepStrictEqual(copy, value)) data['application/json'] = copy; // else JSON would say less, or wrong
    } catch {} // cycles, BigInt, a toJSON that throws: then there is the text only
  }
  return data;
}

/* What display() takes: a bundle of MIME types, or any value. */
function display(value) {
  const isBundle = isPlain(value) && !Array.isArray(value) && Object.keys(value).length > 0 &&
    Object.keys(value).every((key) => /^[a-z]+\/[\w.+-]+$/.test(key));
  if (!isBundle) return sendResult(bundleOf(value));
  const data = {};
  for (const [type, content] of Object.entries(value))
    data[type] = ArrayBuffer.isView(content)
      ? Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString('base64') : content;
  sendResult(data);
}

/* Stacks end where our frames begin. */
Error.prepareStackTrace = (error, frames) => {
  const ours = frames.findIndex((frame) => /^node:inspector$|\/interpreter\.mjs$/.test(frame.getFileName() ?? ''));
  const kept = (ours < 0 ? frames : frames.slice(0, ours)).filter((frame) =>
    !/^node:internal\/(per_context|worker|process\/task_queues|modules\/run_main)/.test(frame.getFileName() ?? ''));
  let head;
  try {
    head = Error.prototype.toString.call(error);
  } catch {
    head = 'Error';
  }
  return [head, ...kept].join('\n    at ');
};

/* What a value says of itself, where it does not throw. */
function told(read, otherwise = null) {
  try {
    return String(read());
  } catch {
    return otherwise;
  }
}

function describeError(error) {
  const isError = told(() => util.types.isNativeError(error) || error instanceof Error) === 'true';
  if (!isError) {
    const value = told(() => util.inspect(error), '<a value that cannot be shown>');
    return { name: 'Uncaught', value, traceback: `Uncaught ${value}` };
  }
  const name = told(() => error.name, 'Error');
  const value = told(() => error.message, '<a message that cannot be read>');
  const traceback = told(() => util.inspect(error)) ?? told(() => error.stack, `${name}: ${value}`);
  return { name, value, traceback };
}

// --- what cells find in the global scope

const requires = new Map();
function requireHere() {
  const cwd = process.cwd();
  if (!requires.has(cwd)) requires.set(cwd, createRequire(path.join(cwd, 'cell.js')));
  return requires.get(cwd);
}

function importHere(specifier, options) {
  const base = path.join(process.cwd(), 'cell.mjs');
  const loader = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  if (loader)
    return unwarned(() => new vm.Script('(specifier, options) => import(specifier, options)',
      { filename: base, importModuleDynamically: loader }).runInThisContext()(specifier, options));
  const text = String(specifier); // older: relative names and packages by hand
  if (/^\.{0,2}\//.test(text)) return import(pathToFileURL(path.resolve(process.cwd(), text)).href);
  if (/^[a-z]+:/.test(text) || builtinModules.includes(text)) return import(text);
  return import(pathToFileURL(requireHere().resolve(text)).href);
}

const define = (name, descriptor) =>
  Object.defineProperty(globalThis, name, { configurable: true, enumerable: false, ...descriptor });
const settable = (name, get) => define(name, {
  get,
  set: (value) => define(name, { value, writable: true }),
});
settable('require', requireHere);
define('display', { value: display, writable: true });
define('__abxdImport', { value: importHere });
define('module', { value: { exports: {} }, writable: true });
define('exports', { value: globalThis.module.exports, writable: true });
settable('__dirname', () => process.cwd());
settable('__filename', () => path.join(process.cwd(), 'cell.js'));
for (const name of builtinModules)
  if (/^[a-z]\w*$/i.test(name) && !(name in globalThis)) settable(name, () => nodeRequire(name));
// What a cell prints is in the pipe before its answer is sent.
for (const stream of [process.stdout, process.stderr]) stream._handle?.setBlocking?.(true);
// Of the pipes themselves: the inspector would keep what the other console says.
globalThis.console = new console.Console({ stdout: process.stdout, stderr: process.stderr });

/* Timers of a cell that was interrupted must not go on with it while the next one runs. */
function keepTimers() {
  const timers = nodeRequire('node:timers');
  const promises = nodeRequire('node:timers/promises');
  const inner = {};
  for (const name of ['setTimeout', 'setInterval', 'setImmediate']) {
    inner[name] = timers[name];
    const clear = timers[name.replace('set', 'clear')];
    const kept = function (callback, ...rest) {
      const owner = cell;
      if (owner?.over || typeof callback !== 'function') return inner[name](callback, ...rest);
      const stop = () => clear(timer);
      const once = name !== 'setInterval';
      const timer = inner[name](once ? function (...args) {
        owner?.timers.delete(stop);
        return callback.apply(this, args);
      } : callback, ...rest);
      owner?.timers.add(stop);
      return timer;
    };
    Object.defineProperty(kept, 'name', { value: name });
    timers[name] = kept;
    globalThis[name] = kept;
  }
  const sleep = (inPromises, kept, hasDelay) => (...args) => {
    const [delay, value, options] = hasDelay ? args : [undefined, ...args];
    if (options !== undefined) return inPromises(...args);
    return new OurPromise((resolve) => (hasDelay ? kept(resolve, delay, value) : kept(resolve, value)));
  };
  promises.setTimeout = sleep(promises.setTimeout, timers.setTimeout, true);
  promises.setImmediate = sleep(promises.setImmediate, timers.setImmediate, false);
  for (const name of ['setTimeout', 'setImmediate'])
    Object.defineProperty(timers[name], util.promisify.custom, { value: promises[name], configurable: true });
  syncBuiltinESMExports();
}
keepTimers();

// Between cells, and in callbacks, nothing that goes wrong ends the context.
process.on('uncaughtException', (error) => {
  process.stderr.write(`Uncaught ${describeError(error).traceback}\n`);
});
process.on('unhandledRejection', (reason) => {
  process.stderr.write(`Unhandled rejection: ${describeError(reason).traceback}\n`);
});

// --- cells

const post = (method, params) =>
  new OurPromise((resolve) => {
    session.post(method, params, (error, value) => resolve(error ? { refused: error } : value));
  });

// A value of the inspector's is fetched by a function that it calls with it.
let fetched;
const fetcher = (await post('Runtime.evaluate', { expression: '(function () {})' })).result.objectId;
define('__abxdFetch', { value: (value) => { fetched = value; } });
async function valueOf(remote) {
  if (remote.type === 'undefined') return undefined;
  const argument = remote.objectId ? { objectId: remote.objectId }
    : 'unserializableValue' in remote ? { unserializableValue: remote.unserializableValue } : { value: remote.value };
  fetched = undefined;
  await post('Runtime.callFunctionOn', {
    objectId: fetcher, functionDeclaration: 'function (value) { __abxdFetch(value) }', arguments: [argument], silent: true,
  });
  const value = fetched;
  fetched = undefined;
  return value;
}

async function evaluate(expression) {
  const evaluated = await post('Runtime.evaluate', {
    expression, replMode: true, awaitPromise: true, objectGroup: 'cell',
  });
  if (evaluated.refused) return { refused: evaluated.refused };
  const { result, exceptionDetails } = evaluated;
  if (exceptionDetails) {
    const thrown = await valueOf(exceptionDetails.exception);
    // V8 refuses a script before any of it runs, without a place in the cell or at its very beginning.
    const early = thrown instanceof SyntaxError && !/\n\s+at (?!cell-\d+:1:1(\n|$))/.test(String(thrown.stack));
    return { thrown, early, line: exceptionDetails.lineNumber + 1 };
  }
  let value = await valueOf(result);
  // A cell that ends with main() is over when that is.
  if (util.types.isPromise(value)) {
    try {
      value = await value;
    } catch (error) {
      return { thrown: error };
    }
  }
  return { value };
}

async function run(message) {
  const own = { id: message.id, timers: new Set(), bytes: 0, results: 0, truncated: false, over: false };
  cell = own;
  let outcome;
  try {
    for (const [name, value] of Object.entries(message.env ?? {}))
      if (value === null) delete process.env[name];
      else process.env[name] = value;
    if (message.cwd) process.chdir(message.cwd);
    outcome = await evaluate(`${message.code}\n//# sourceURL=cell-${message.count}`);
  } catch (error) {
    outcome = { thrown: error };
  }
  post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });
  if (own.over) return;
  let error = null;
  if (outcome.early) {
    const { name, message: text } = outcome.thrown;
    error = { name, value: text, traceback: `cell-${message.count}:${outcome.line}\n${name}: ${text}` };
  } else if ('thrown' in outcome) error = describeError(outcome.thrown);
  else if (outcome.refused) error = { name: 'Terminated', value: 'the cell was ended', traceback: '' };
  else if (outcome.value !== undefined) {
    try {
      sendResult(bundleOf(outcome.value));
    } catch (thrown) {
      error = describeError(thrown); // of a getter, or util.inspect.custom
    }
  }
  channel.postMessage({ kind: 'done', id: own.id, error, early: outcome.early, truncated: own.truncated });
}

channel.on('message', (message) => {
  switch (message.kind) {
  case 'ping':
    channel.postMessage({ kind: 'pong' });
    break;
  case 'open':
    try {
      const keep = /^(HOME|TMPDIR|ABX_PROCESS_ID)$/;
      for (const name of Object.keys(process.env)) if (!keep.test(name)) delete process.env[name];
      for (const [name, value] of Object.entries(message.env ?? {}))
        if (!keep.test(name) && value !== null) process.env[name] = value;
      if (message.cwd) process.chdir(message.cwd);
      channel.postMessage({ kind: 'opened', id: message.id });
    } catch (error) {
      channel.postMessage({ kind: 'opened', id: message.id, error: String(error.message) });
    }
    break;
  case 'run':
    run(message);
    break;
  case 'abandon':
    if (!cell || cell.id !== message.id) break;
    cell.over = true;
    for (const stop of cell.timers) stop();
    cell.timers.clear();
    break;
  }
});
