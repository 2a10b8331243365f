// The browser's forward proxy over real sockets, with names that resolve to what a test says.
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import { after, before, test } from 'node:test';
import { startProxy } from '../../workers/browser/proxy.mjs';

const OWN_PORT = 8080;
let web; // answers with what it got
let proxy;
let names = {}; // name: its addresses, or a list of them for one lookup after the other
const lookups = [];

async function lookup(name) {
  lookups.push(name);
  const known = names[name];
  if (!known) throw Object.assign(new Error('unknown'), { code: 'ENOTFOUND' });
  const addresses = Array.isArray(known[0]) ? known.shift() : known;
  return addresses.map((address) => ({ address, family: net.isIP(address) }));
}

const listening = (server) => new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));

before(async () => {
  web = http.createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      response.setHeader('X-Twice', ['a', 'b']);
      response.setHeader('Connection', 'X-Private');
      response.setHeader('X-Private', 'of this connection');
      response.end(JSON.stringify({
        method: request.method, url: request.url, headers: request.headers, body: Buffer.concat(chunks).toString(),
      }));
    });
  });
  web.port = await listening(web);
  proxy = await startProxy({
    ports: [OWN_PORT], allowHosts: ['allowed.example', '*.trusted.example:81', '169.254.9.9'], lookup,
  });
});

after(() => {
  proxy.close();
  web.close();
  web.closeAllConnections();
});

/* {status, headers, text}, or {error}. */
function ask(url, { method = 'GET', headers = {}, body, through = proxy } = {}) {
  return new Promise((resolve) => {
    const request = http.request({ host: '127.0.0.1', port: through.port, path: url, method, headers, agent: false });
    request.on('response', async (response) => {
      let text = '';
      try {
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode, headers: response.headers, text });
      } catch (error) {
        resolve({ error: error.code });
      }
    });
    request.on('error', (error) => resolve({ error: error.code }));
    request.end(body);
  });
}

/* The status line that a CONNECT gets, and the open socket. */
function connect(authority) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(proxy.port, '127.0.0.1', () => socket.write(`CONNECT ${authority} HTTP/1.1\r\n\r\n`));
    socket.once('data', (data) => resolve({ line: data.toString().split('\r\n')[0], socket }));
    socket.once('error', reject);
  });
}

/* What the proxy remembers of both ways to a place. */
async function refusal(host, port) {
  const { error } = await ask(`http://${host}:${port}/`);
  assert.equal(error, 'ECONNRESET');
  const fault = proxy.fault(new URL(`http://${host}:${port}`).hostname, port);
  const { line, socket } = await connect(`${host}:${port}`);
  socket.destroy();
  assert.equal(line, 'HTTP/1.1 403 Forbidden');
  return fault;
}

test('a request arrives as it was sent, without the headers of the connection', async () => {
  names = { 'site.example': ['127.0.0.1'] };
  const { status, headers, text } = await ask(`http://site.example:${web.port}/a%20b?c=d`, {
    method: 'POST', body: Buffer.from('twelve bytes'), headers: {
      Host: 'other.example', Connection: 'X-Mine', 'X-Mine': '1', 'Proxy-Authorization': 'secret', TE: 'trailers', 'X-Kept': 'ä',
    },
  });
  const got = JSON.parse(text);
  assert.equal(status, 200);
  assert.deepEqual([got.method, got.url, got.body], ['POST', '/a%20b?c=d', 'twelve bytes']);
  assert.equal(got.headers.host, `site.example:${web.port}`);
  assert.equal(got.headers['x-kept'], 'ä');
  for (const name of ['x-mine', 'proxy-authorization', 'te']) assert.equal(got.headers[name], undefined, name);
  assert.equal(headers['x-twice'], 'a, b');
  assert.equal(headers['x-private'], undefined);
});

test('the server itself is refused by every name of this machine', async () => {
  names = { 'rebound.example': ['127.0.0.1'], 'mixed.example': ['192.0.2.1', '::1'] };
  const own = Object.values(os.networkInterfaces()).flat().filter((one) => one.family === 'IPv4').map((one) => one.address);
  for (const host of ['127.0.0.1', '127.8.9.1', '0.0.0.0', 'localhost', 'LOCALHOST.', 'any.localhost', '[::1]', '[::]',
    '[::ffff:127.0.0.1]', '[0:0:0:0:0:ffff:7f00:1]', 'rebound.example', 'mixed.example', ...own])
    assert.match((await refusal(host, OWN_PORT))?.reason ?? host, /:8080 is a port of the server's own$/);
  assert.match((await refusal('127.0.0.1', proxy.port)).reason, /own$/);
});

test('link-local addresses and metadata services are refused in each of their forms', async () => {
  names = { 'meta.example': ['169.254.169.254'], 'one-of-two.example': ['127.0.0.1', 'fd00:ec2::254'] };
  for (const host of ['169.254.169.254', '169.254.0.1', '[fe80::1]', '[febf::1]', '[::ffff:169.254.169.254]',
    '[::ffff:a9fe:a9fe]', '[::169.254.169.254]', '[64:ff9b::a9fe:a9fe]', '[64:ff9b:1::a9fe:a9fe]', '[2002:a9fe:a9fe::]',
    'meta.example'])
    assert.match((await refusal(host, 80)).reason, /is a link-local address$/, host);
  for (const host of ['100.100.100.200', '192.0.0.192', '168.63.129.16', '[fd00:ec2::254]', '[fd20:ce::254]', '[fd20:ce:0::0:254]',
    'one-of-two.example'])
    assert.match((await refusal(host, 80)).reason, /is the address of a metadata service$/, host);
});

test('a name is connected to at the address that was looked at', async () => {
  names = { 'fickle.example': [['127.0.0.1'], ['169.254.169.254'], ['169.254.169.254']] };
  const before = lookups.length;
  const { status } = await ask(`http://fickle.example:${web.port}/`);
  assert.deepEqual([status, lookups.slice(before)], [200, ['fickle.example']]);
});

test('what the operator allows is not refused', async () => {
  names = {
    'allowed.example': ['127.0.0.1'], 'x.trusted.example': ['169.254.1.1'], 'named.example': ['169.254.9.9'],
    'other.example': ['169.254.9.9', '169.254.9.8'],
  };
  const short = await startProxy({
    ports: [web.port], lookup, allowHosts: ['ALLOWED.example.', `127.0.0.1:${web.port}`, `[::1]:${web.port}`, '::1'],
  });
  for (const host of ['allowed.example', '127.0.0.1'])
    assert.equal((await ask(`http://${host}:${web.port}/`, { through: short })).status, 200, host);
  short.close();
  const strict = await startProxy({ ports: [web.port], lookup, allowHosts: [`127.0.0.1:${web.port + 1}`, '*.example.com'] });
  assert.equal((await ask(`http://127.0.0.1:${web.port}/`, { through: strict })).error, 'ECONNRESET');
  assert.match(strict.fault('127.0.0.1', web.port).reason, /own$/);
  strict.close();
  assert.match((await refusal('x.trusted.example', 80)).reason, /link-local/); // the rule is for port 81
  assert.match((await refusal('other.example', 80)).reason, /link-local/); // one of its addresses only
});

test('what cannot be reached is remembered until it is', async () => {
  names = {};
  assert.equal((await ask('http://nowhere.example/')).error, 'ECONNRESET');
  assert.deepEqual(proxy.fault('Nowhere.example', 80), { refused: false, reason: 'the name nowhere.example is not known (ENOTFOUND)' });
  const late = http.createServer((request, response) => response.end('here'));
  const port = await listening(late);
  await new Promise((resolve) => late.close(resolve));
  const { line } = await connect(`127.0.0.1:${port}`);
  assert.equal(line, 'HTTP/1.1 502 Bad Gateway');
  assert.deepEqual(proxy.fault('127.0.0.1', port), { refused: false, reason: `127.0.0.1:${port} cannot be reached (ECONNREFUSED)` });
  await new Promise((resolve) => late.listen(port, '127.0.0.1', resolve));
  assert.equal((await ask(`http://127.0.0.1:${port}/`)).text, 'here');
  assert.equal(proxy.fault('127.0.0.1', port), undefined);
  late.close();
});

test('a tunnel carries bytes both ways, and ends when one side does', async () => {
  const echo = net.createServer((socket) => socket.pipe(socket));
  const { line, socket } = await connect(`127.0.0.1:${await listening(echo)}`);
  assert.equal(line, 'HTTP/1.1 200 Connection Established');
  const sent = Buffer.alloc(1 << 20, 'abcdefgh');
  const chunks = [];
  socket.end(sent);
  for await (const chunk of socket) chunks.push(chunk);
  assert.ok(Buffer.concat(chunks).equals(sent));
  echo.close();
});

test('nothing that a server or a page sends ends the proxy', async () => {
  const answers = ['garbage\r\n\r\n', 'HTTP/1.1 42 Odd\r\n\r\n', 'HTTP/1.1 200 \x01\r\nContent-Length: 0\r\n\r\n',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', `HTTP/1.1 200 OK\r\nX: ${'y'.repeat(300000)}\r\n\r\n`, ''];
  const odd = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (data) => socket.end(answers[Number(/ \/(\d+)/.exec(data)[1])]));
  });
  const port = await listening(odd);
  const got = [];
  for (const index of answers.keys()) got.push(await ask(`http://127.0.0.1:${port}/${index}`));
  assert.deepEqual(got, answers.map(() => ({ error: 'ECONNRESET' })));
  odd.close();
  for (const text of ['\r\n\r\n', 'GET / HTTP/1.1\r\n\r\n', 'GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n', 'CONNECT a HTTP/1.1\r\n\r\n',
    'CONNECT a:99999 HTTP/1.1\r\n\r\n', 'CONNECT [::1]: HTTP/1.1\r\n\r\n', 'POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n'])
    await new Promise((resolve) => {
      const socket = net.connect(proxy.port, '127.0.0.1', () => socket.end(text));
      socket.resume().on('close', resolve).on('error', () => {});
    });
  assert.equal((await ask(`http://127.0.0.1:${web.port}/`)).status, 200);
});
