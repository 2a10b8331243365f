// The web that the browser's tests look at: the files of a folder, and paths that misbehave. On loopback; prints the port,
// then a line of JSON for each request.
//   node pages.mjs FOLDER
// /NAME               a file of the folder; its type by the name's end
// /csp/NAME           the same, with a policy that forbids all but what it holds itself, and trusted types
// /status/CODE        a page with that status
// /redirect/N         N redirects, then /index.html
// /to?URL             a redirect to there
// /silent             no answer
// /trickle            a head, and a byte a second
// /cut                half of what its head promises
// /download           a file to save
// /bytes?N            a page with so many bytes of text, in lines
import { createReadStream, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';

const folder = process.argv[2];
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.txt': 'text/plain', '.png': 'image/png' };
const POLICY = "default-src 'none'; script-src 'none'; style-src 'unsafe-inline'; require-trusted-types-for 'script'";

function page(response, status, text, headers = {}) {
  response.writeHead(status, { 'Content-Type': TYPES['.html'], 'Cache-Control': 'no-store', ...headers }).end(text);
}

function file(response, name, headers = {}) {
  const path = join(folder, name.replaceAll('..', ''));
  if (!existsSync(path)) return page(response, 404, `<title>none</title><p>no page ${name}`);
  response.writeHead(200, { 'Content-Type': TYPES[extname(name)] ?? 'application/octet-stream', 'Cache-Control': 'no-store', ...headers });
  createReadStream(path).pipe(response);
}

const paths = {
  csp: (response, name) => file(response, name, { 'Content-Security-Policy': POLICY }),
  status: (response, code) => page(response, Number(code), `<title>status ${code}</title><p>status ${code}`),
  redirect(response, count) {
    page(response, 302, '', { Location: Number(count) > 1 ? `/redirect/${Number(count) - 1}` : '/index.html' });
  },
  to: (response, name, query) => page(response, 302, '', { Location: decodeURIComponent(query) }),
  silent() {},
  trickle(response) {
    response.writeHead(200, { 'Content-Type': TYPES['.html'] }).write('<title>slow</title><p>begun');
    const timer = setInterval(() => response.write('.'), 1000);
    response.on('close', () => clearInterval(timer));
  },
  cut(response) {
    response.writeHead(200, { 'Content-Type': TYPES['.html'], 'Content-Length': 1000 }).write('<title>cut</title><p>half');
    setTimeout(() => response.destroy(), 50);
  },
  download: (response) => page(response, 200, 'to be kept', {
    'Content-Type': 'application/octet-stream', 'Content-Disposition': 'attachment; filename="kept.bin"',
  }),
  bytes: (response, name, query) => page(response, 200, `<title>bytes</title><body><pre>${`${'x'.repeat(79)}\n`.repeat(Number(query) / 80)}</body>`),
};

const server = createServer((request, response) => {
  console.log(JSON.stringify({ method: request.method, url: request.url, agent: request.headers['user-agent'] }));
  const [path, query = ''] = request.url.split(/\?(.*)/s);
  const [, first, rest = ''] = decodeURIComponent(path).split(/^\/([^/]*)\/?(.*)$/s);
  if (Object.hasOwn(paths, first)) paths[first](response, rest, query);
  else file(response, path === '/' ? 'index.html' : decodeURIComponent(path).slice(1));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
