// The one Chromium with its one context: started when first needed, and again after its end.
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';
import { endChildrenSince } from '../interpreter_children.mjs';
import { Refusal, plain } from './failure.mjs';
import { prepareSelectors } from './world.mjs';

const LAUNCH_MAX_MS = 60000;

const nodeRequire = createRequire(import.meta.url);

/* The library's newer versions end the process while they are loaded by a Node that is too old for them. */
function checkNode(directory) {
  const { version, engines } = JSON.parse(fs.readFileSync(path.join(directory, 'package.json'), 'utf8'));
  const wanted = /(\d+)(?:\.(\d+))?/.exec(engines?.node ?? '')?.slice(1).map((part) => Number(part ?? 0));
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (wanted && (major < wanted[0] || (major === wanted[0] && minor < wanted[1])))
    throw new Refusal('unavailable', `playwright-core ${version} needs Node ${engines.node}, and this is ` +
      `${process.versions.node}: npm install --prefix ${path.resolve(directory, '../..')} playwright-core@1.61.1`);
}

function load(directory) {
  try {
    checkNode(directory);
    return nodeRequire(directory);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw new Refusal('unavailable', `playwright-core in ${directory} cannot be loaded: ${error.message}`);
  }
}

function args(proxyPort) {
  return [
    `--proxy-server=http://127.0.0.1:${proxyPort}`,
    '--proxy-bypass-list=<-loopback>', // else Chromium connects to this machine by itself
    '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1', // nor does it ask for names
    '--dns-prefetch-disable',
    '--disable-quic',
    '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
    '--webrtc-ip-handling-policy=disable_non_proxied_udp',
  ];
}

/* The library's message holds all that Chromium wrote, each line marked. */
function whyNotLaunched(error, executable) {
  const text = plain(error);
  const said = [...text.matchAll(/\[err\] (.*)/g)].map(([, line]) => line.trim()).filter(Boolean);
  const telling = said.filter((line) => /FATAL|ERROR|error|cannot|No usable|not found/.test(line));
  const first = text.split('\n')[0].replace(/^[\w.]+: /, '');
  const last = telling.at(-1) ?? said.at(-1) ?? (/has been closed/.test(first) ? 'it ended at once' : first);
  return new Refusal('unavailable', `${executable} does not start: ${last}`);
}

export class Engine {
  #proxy;
  #onLoss;
  #ready = null; // a promise of { browser, context }
  #ours = new WeakSet();
  #making = new Set();

  /* `proxy` is a promise of startProxy's; onLoss() is called when a browser that ran has ended. */
  constructor(proxy, onLoss) {
    this.#proxy = proxy;
    this.#onLoss = onLoss;
  }

  /* A new page of ours, its context, and the proxy that it goes through. Throws a Refusal where the browser does not
   * start. */
  async newPage(parts) {
    this.#ready ??= this.#begin(parts);
    const { context } = await this.#ready;
    const making = context.newPage();
    this.#making.add(making);
    try {
      const page = await making;
      this.#ours.add(page);
      return { page, context, proxy: await this.#proxy };
    } finally {
      this.#making.delete(making);
    }
  }

  /* Ends the browser at once, if there is one. */
  kill() {
    if (!this.#ready) return;
    endChildrenSince(0, 'SIGKILL');
    this.#lose();
  }

  #lose() {
    this.#ready = null;
    this.#onLoss();
  }

  #begin(parts) {
    const ready = this.#launch(parts, () => { if (this.#ready === ready) this.#lose(); });
    ready.catch(() => { if (this.#ready === ready) this.#ready = null; });
    return ready;
  }

  async #launch(parts, onEnd) {
    const { chromium, selectors } = load(parts.library);
    await prepareSelectors(selectors);
    const { port } = await this.#proxy;
    const browser = await chromium.launch({
      executablePath: parts.executable,
      args: args(port),
      chromiumSandbox: process.getuid() !== 0, // it does not work for root
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
      timeout: LAUNCH_MAX_MS,
    }).catch((error) => { throw whyNotLaunched(error, parts.executable); });
    browser.on('disconnected', onEnd);
    const context = await browser.newContext({ acceptDownloads: false });
    context.on('page', (page) => this.#closeForeign(page));
    return { browser, context };
  }

  /* Windows that a page opened: told of before newPage says which one is ours. */
  async #closeForeign(page) {
    await Promise.allSettled(this.#making);
    if (!this.#ours.has(page)) page.close().catch(() => {});
  }
}
