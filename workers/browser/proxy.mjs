// The forward proxy that all of the browser's traffic goes through. It resolves each name once, looks at every address that
// the name has, and connects to one of those it looked at: neither a redirect nor a name that changes leads past it.
import dns from 'node:dns';
import http from 'node:http';
import net from 'node:net';
import { pipeline } from 'node:stream';
import { allowRules, plainHost, whyRefused } from './addresses.mjs';

const RESOLVED_FOR_MS = 10000; // a page asks for dozens of things of one host
const FAULTS_KEPT_MS = 60000;
const ENTRIES_MAX = 1000;
const HEAD_MAX_BYTES = 256 * 1024; // of requests and answers: cookies may be long
const IDLE_MS = 120000; // longer than Chromium keeps a connection, or it would write into one that is just closing
// Of the connection, not of the message (RFC 9110, 7.6.1); those of proxies besides.
const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'proxy-authenticate', 'te',
  'transfer-encoding', 'upgrade'];

const HOST = new Set(['host']); // the URL has it (RFC 9112, 3.2.2)

/* A map that forgets: what is older than `keptMs`, and the oldest of too many. */
class Recent {
  #entries = new Map();
  #keptMs;

  constructor(keptMs) {
    this.#keptMs = keptMs;
  }

  get(key) {
    const entry = this.#entries.get(key);
    return entry && performance.now() - entry.at < this.#keptMs ? entry.value : undefined;
  }

  set(key, value) {
    this.#entries.delete(key);
    this.#entries.set(key, { value, at: performance.now() });
    if (this.#entries.size > ENTRIES_MAX) this.#entries.delete(this.#entries.keys().next().value);
  }

  delete(key) {
    this.#entries.delete(key);
  }
}

/* Raw headers are a flat list, as node gives and takes them: name, value, name … */
function* pairs(raw) {
  for (let i = 0; i < raw.length; i += 2) yield [raw[i].toLowerCase(), raw[i + 1], raw[i]];
}

function without(raw, dropped) {
  const kept = [];
  for (const [name, value, asWritten] of pairs(raw)) if (!dropped.has(name)) kept.push(asWritten, value);
  return kept;
}

/* Without those of the connection. */
function endToEnd(raw) {
  const dropped = new Set(HOP_BY_HOP);
  for (const [name, value] of pairs(raw))
    if (name === 'connection') for (const word of value.split(',')) dropped.add(word.trim().toLowerCase());
  return without(raw, dropped);
}

/* As messages name it. */
function place(hostname, port) {
  const host = plainHost(hostname);
  return `${net.isIPv6(host) ? `[${host}]` : host}:${port}`;
}

class Fault extends Error {
  constructor(refused, reason) {
    super(reason);
    this.refused = refused;
  }
}

function describe(error) {
  const [first] = error.errors ?? [error]; // of several addresses
  return first.code ?? first.message;
}

/* Listens on loopback. `ports` are the server's own, `allowHosts` the operator's exceptions, `lookup` is for tests.
 * Resolves to { port, fault(host, port), close() }. */
export async function startProxy({ ports, allowHosts = [], lookup = dns.promises.lookup }) {
  const isAllowed = allowRules(allowHosts);
  const ownPorts = new Set(ports);
  const resolved = new Recent(RESOLVED_FOR_MS);
  const faults = new Recent(FAULTS_KEPT_MS);
  const tunnels = new Set();
  const agent = new http.Agent({ keepAlive: true, noDelay: true });

  async function addressesOf(host) {
    const family = net.isIP(host);
    if (family) return [{ address: host, family }];
    // RFC 6761: never asked of a server, whose answer could be anything.
    if (host === 'localhost' || host.endsWith('.localhost'))
      return [{ address: '127.0.0.1', family: 4 }, { address: '::1', family: 6 }];
    let addresses = resolved.get(host);
    if (!addresses) {
      addresses = lookup(host, { all: true });
      resolved.set(host, addresses);
      addresses.catch(() => resolved.delete(host));
    }
    return addresses;
  }

  /* What connects to host and port, for net.connect; throws a Fault. */
  async function aim(hostname, port) {
    const host = plainHost(hostname);
    let addresses;
    try {
      addresses = await addressesOf(host);
    } catch (error) {
      throw new Fault(false, `the name ${host} is not known (${describe(error)})`);
    }
    if (!isAllowed(host, addresses, port))
      for (const { address } of addresses) {
        const reason = whyRefused(address, port, ownPorts);
        if (reason) throw new Fault(true, `${place(host, port)} is ${reason}`);
      }
    return {
      host,
      port,
      noDelay: true,
      autoSelectFamily: true,
      lookup(_, options, done) {
        if (options.all) done(null, addresses);
        else done(null, addresses[0].address, addresses[0].family);
      },
    };
  }

  function note(host, port, error) {
    const known = error instanceof Fault;
    faults.set(place(host, port), {
      refused: known && error.refused,
      reason: known ? error.message : `${place(host, port)} cannot be reached (${describe(error)})`,
    });
  }

  async function forward(request, response) {
    let url;
    try {
      url = new URL(request.url);
      if (url.protocol !== 'http:') throw new TypeError('not http');
    } catch {
      return response.writeHead(400, { Connection: 'close' }).end();
    }
    const port = Number(url.port || 80);
    let upstream;
    // Chromium shows no page of ours then, but its own kind of error.
    const fail = (error) => {
      if (!response.headersSent && !request.socket.destroyed) note(url.hostname, port, error);
      upstream?.destroy();
      request.socket.destroy();
    };
    try {
      const target = await aim(url.hostname, port);
      if (request.socket.destroyed) return;
      upstream = http.request({
        ...target,
        agent,
        method: request.method,
        path: url.pathname + url.search,
        headers: ['Host', url.host, ...without(endToEnd(request.rawHeaders), HOST)],
        setHost: false,
        maxHeaderSize: HEAD_MAX_BYTES,
      });
    } catch (error) {
      return fail(error);
    }
    upstream.on('response', (answer) => {
      faults.delete(place(url.hostname, port));
      response.sendDate = false;
      try {
        response.writeHead(answer.statusCode, answer.statusMessage, endToEnd(answer.rawHeaders));
      } catch (error) { // what node reads but does not write, such as a status of 42
        return fail(error);
      }
      pipeline(answer, response, () => {}); // either end's failure ends the other
    });
    upstream.on('error', fail);
    upstream.on('close', () => {
      if (!response.headersSent) fail(new Error('it switched to another protocol'));
    });
    response.on('close', () => upstream.destroy());
    pipeline(request, upstream, () => {});
  }

  async function tunnel(request, client, head) {
    client.on('error', () => client.destroy());
    const [, hostname, portText] = /^(.+):(\d{1,5})$/.exec(request.url) ?? [];
    const port = Number(portText);
    if (!hostname || port < 1 || port > 65535) return client.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    let upstream;
    const fail = (error) => {
      note(hostname, port, error);
      client.end(`HTTP/1.1 ${error.refused ? '403 Forbidden' : '502 Bad Gateway'}\r\nContent-Length: 0\r\n\r\n`);
    };
    try {
      const target = await aim(hostname, port);
      if (client.destroyed) return;
      upstream = net.connect(target);
    } catch (error) {
      return fail(error);
    }
    tunnels.add(client).add(upstream);
    upstream.once('error', fail);
    upstream.once('connect', () => {
      upstream.off('error', fail);
      upstream.on('error', () => upstream.destroy());
      faults.delete(place(hostname, port));
      client.setNoDelay(true);
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      if (head.length > 0) upstream.write(head);
      client.pipe(upstream);
      upstream.pipe(client);
    });
    client.once('close', () => {
      tunnels.delete(client);
      upstream.destroy();
    });
    upstream.once('close', () => {
      tunnels.delete(upstream);
      if (client.writable) client.end();
      else client.destroy();
    });
  }

  const server = http.createServer({
    maxHeaderSize: HEAD_MAX_BYTES, keepAliveTimeout: IDLE_MS, requestTimeout: 0, noDelay: true,
  });
  server.on('request', forward);
  server.on('connect', tunnel);
  server.on('upgrade', (request, socket) => socket.destroy()); // WebSockets come by CONNECT
  server.on('clientError', (error, socket) => socket.destroy());
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address();
  ownPorts.add(port);

  return {
    port,
    /* The newest fault with that host and port, {refused, reason}, unless it has been reached since; undefined. */
    fault: (host, port) => faults.get(place(host, port)),
    close() {
      server.close();
      server.closeAllConnections();
      agent.destroy();
      for (const socket of tunnels) socket.destroy();
    },
  };
}
