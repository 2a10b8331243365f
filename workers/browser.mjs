// The browser behind the /browser routes: abxd starts it with the first call, and ends it by closing the channel.
// JSON-RPC in lines over descriptor 3; a method is the name of an operation, and a page takes one at a time.
import { openChannel } from './channel.mjs';
import { endChildrenSince } from './interpreter_children.mjs';
import { Call } from './browser/call.mjs';
import { content, waitsFor as contentWaitsFor } from './browser/content.mjs';
import { evaluate, waitsFor as evaluateWaitsFor } from './browser/evaluate.mjs';
import { click, type, waitsFor as inputWaitsFor } from './browser/input.mjs';
import { Refusal } from './browser/failure.mjs';
import { Engine } from './browser/launch.mjs';
import { canBeLeft, navigate, waitsFor as navigateWaitsFor } from './browser/navigate.mjs';
import { BROWSER_ENDED } from './browser/page.mjs';
import { Pages } from './browser/pages.mjs';
import { pdf } from './browser/pdf.mjs';
import { startProxy } from './browser/proxy.mjs';
import { screenshot, waitsFor as screenshotWaitsFor } from './browser/screenshot.mjs';

const { ports = [], allow_hosts: allowHosts = [] } = JSON.parse(process.argv[2] ?? '{}');

// What may lead to another page acts on this one, and must not go on after its call.
const operations = {
  navigate: { run: navigate, waitsFor: navigateWaitsFor, canUse: canBeLeft },
  screenshot: { run: screenshot, waitsFor: screenshotWaitsFor },
  content: { run: content, waitsFor: contentWaitsFor },
  click: { run: click, waitsFor: inputWaitsFor, mayLead: true },
  type: { run: type, waitsFor: inputWaitsFor, mayLead: true },
  evaluate: { run: evaluate, waitsFor: evaluateWaitsFor },
  pdf: { run: pdf, waitsFor: () => 'the document' },
};

function end() {
  endChildrenSince(0, 'SIGKILL');
  process.exit(0);
}
process.on('SIGTERM', end);
// Of the library's insides: whichever call it belongs to still has its deadline.
for (const event of ['uncaughtException', 'unhandledRejection'])
  process.on(event, (error) => process.stderr.write(`${event}: ${error?.stack ?? error}\n`));

const proxy = startProxy({ ports, allowHosts });
const engine = new Engine(proxy, () => pages.lose(BROWSER_ENDED));
const pages = new Pages(engine);
const calls = new Map(); // id → call, of those without an answer

function receive(message) {
  const { id, method, params = {} } = message;
  if (method === 'cancel') return calls.get(params.id)?.refuse(new Refusal('cancelled', 'nobody waits any more'));
  if (method === 'console') return channel.answer(id, pages.console(params.page, params));
  if (!Object.hasOwn(operations, method)) return channel.refuse(id, -32601, `no such method: ${method}`);
  const call = new Call(channel, message);
  calls.set(id, call);
  call.over.then(() => calls.delete(id));
  try {
    pages.at(params.page).run(call, operations[method]);
  } catch (error) {
    call.refuse(error);
  }
}

const channel = openChannel({ receive, end });
