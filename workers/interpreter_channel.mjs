// The second thread of the JavaScript interpreter: reads calls from descriptor 3, hands cells to the main thread, ends
// those that take too long, and writes the answers. It prints nothing: its console would go through the main thread.
import { Session } from 'node:inspector';
import { parentPort } from 'node:worker_threads';
import { setTimeout as sleep } from 'node:timers/promises';
import { openChannel } from './channel.mjs';
import { endChildrenSince } from './interpreter_children.mjs';
import { rewrite } from './interpreter_rewrite.mjs';

const PING_MS = 200; // a main thread that does not answer for so long is computing, or blocked
const GIVE_UP_MS = 4500; // from then on it is the parent's to kill us
const RETRIES_MAX = 32;

// Ends the process and what it started, also while the main thread computes: process.exit would end this thread only.
function end() {
  endChildrenSince(0, 'SIGKILL');
  process.kill(process.pid, 'SIGKILL');
}

let count = 0;
let call = null; // {id, code, interrupted, timer, assigned, …}: one at a time
let pong = null;

function alive() {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), PING_MS);
    pong = () => {
      clearTimeout(timer);
      resolve(true);
    };
    parentPort.postMessage({ kind: 'ping' });
  });
}

function finish(own, status, error, truncated) {
  if (call !== own) return;
  call = null;
  clearTimeout(own.timer);
  answer(own.id, { status, execution_count: own.count, error, truncated });
}

/* Connected for this only: node waits for a debugger at its exit, and says so on standard error. */
async function terminate() {
  const inspector = new Session();
  inspector.connectToMainThread();
  const answered = new Promise((resolve) => {
    inspector.post('Runtime.terminateExecution', resolve);
  });
  await Promise.race([answered, sleep(PING_MS)]);
  inspector.disconnect();
}

async function interrupt(own) {
  if (call !== own || own.interrupted) return;
  own.interrupted = true;
  for (const began = Date.now(); Date.now() - began < GIVE_UP_MS && call === own;) {
    if (await alive()) {
      // It waits for something: told to forget this cell, it is free for the next one.
      parentPort.postMessage({ kind: 'abandon', id: own.id });
      if (await alive()) return finish(own, 'timeout', null, own.truncated);
    }
    if (call !== own) return;
    await terminate();
    if (await alive()) continue;
    // Blocked in a system call then, such as execSync: its child can be ended.
    endChildrenSince(own.began, Date.now() - began > 1500 ? 'SIGKILL' : 'SIGTERM');
    await sleep(50);
  }
}

function start(own) {
  parentPort.postMessage({
    kind: 'run', id: own.id, count: own.count, code: rewrite(own.code, own.assigned), env: own.env, cwd: own.cwd,
  });
}

function execute(id, params) {
  count += 1;
  const own = {
    id, count, code: String(params.code), env: params.env, cwd: params.cwd, began: Date.now(),
    interrupted: false, assigned: new Set(), truncated: false,
  };
  call = own;
  if (params.timeout_ms > 0) own.timer = setTimeout(() => interrupt(own), params.timeout_ms);
  start(own);
}

parentPort.on('message', (message) => {
  switch (message.kind) {
  case 'pong':
    pong?.();
    break;
  case 'opened':
    if (message.error) refuse(message.id, -32000, message.error, { code: 'bad_cwd', field: 'cwd' });
    else answer(message.id, { engine: 'node', version: process.versions.node });
    break;
  case 'result':
    if (call?.id === message.id)
      send(`{"jsonrpc":"2.0","method":"result","params":{"id":${message.id},"data":${message.data}}}`);
    break;
  case 'done': {
    const own = call;
    if (own?.id !== message.id) break;
    if (own.interrupted) {
      finish(own, 'timeout', null, message.truncated);
      break;
    }
    // Nothing of the cell has run yet: a name that is bound otherwise is assigned to instead.
    const bound = message.early && /^Identifier '(.+)' has already been declared$/.exec(message.error.value);
    if (bound && !own.assigned.has(bound[1]) && own.assigned.size < RETRIES_MAX) {
      own.assigned.add(bound[1]);
      start(own);
    } else finish(own, message.error ? 'error' : 'ok', message.error, message.truncated);
    break;
  }
  }
});

function receive({ id, method, params = {} }) {
  if (method === 'cancel') {
    if (call?.id === params.id) interrupt(call);
  } else if (method === 'open') parentPort.postMessage({ kind: 'open', id, env: params.env, cwd: params.cwd });
  else if (method !== 'execute') refuse(id, -32601, `no such method: ${method}`);
  else if (call) refuse(id, -32000, 'a cell is running', { code: 'busy' });
  else execute(id, params);
}
const { answer, refuse, send } = openChannel({ receive, end });
