// A user at stock xterm.js (attach and fit add-ons) in headless Chromium: serves xterm_page.html, opens it, types, looks at
// the screen, and prints what was there as one line of JSON. Run by tests/lua/http/pty_clients_spec.lua:
//   node xterm_page.mjs CHROMIUM PORT REST_URL    with the server's token in ABX_TEST_TOKEN; the page is served on
//                                                 http://127.0.0.1:PORT, an origin that the server must allow
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const TIMEOUT_MS = 120000;
const LARGE = { width: 1000, height: 600 };
const SMALL = { width: 700, height: 400 };
const TYPES = { html: "text/html", js: "text/javascript", css: "text/css" };
const [browserPath, port, rest] = process.argv.slice(2);
const token = process.env.ABX_TEST_TOKEN;

const FILES = new Map([
  ["/", "xterm_page.html"],
  ["/xterm/css/xterm.css", "node_modules/@xterm/xterm/css/xterm.css"],
  ["/xterm/lib/xterm.js", "node_modules/@xterm/xterm/lib/xterm.js"],
  ["/addon-attach/lib/addon-attach.js", "node_modules/@xterm/addon-attach/lib/addon-attach.js"],
  ["/addon-fit/lib/addon-fit.js", "node_modules/@xterm/addon-fit/lib/addon-fit.js"],
]);

const pages = createServer(async (request, response) => {
  const name = FILES.get(request.url);
  if (!name) return response.writeHead(404).end();
  response.setHeader("content-type", TYPES[name.split(".").pop()]);
  response.end(await readFile(fileURLToPath(new URL(name, import.meta.url))));
});
await new Promise((resolve) => pages.listen(Number(port), "127.0.0.1", resolve));

const browser = await chromium.launch({
  executablePath: browserPath,
  // Chromium refuses to run as root with its sandbox on; it opens nothing but the page above.
  args: process.getuid() === 0 ? ["--no-sandbox"] : [],
  timeout: TIMEOUT_MS,
});
const page = await browser.newPage({ viewport: LARGE });
page.setDefaultTimeout(TIMEOUT_MS);
page.on("pageerror", (error) => console.error(error.message));
page.on("console", (message) => console.error(message.text()));

// Waits until the screen matches, and gives what it shows then.
async function screen(pattern) {
  const matches = ([source]) => new RegExp(source, "m").test(screenText());
  try {
    await page.waitForFunction(matches, [pattern.source]);
  } catch (error) {
    const now = await page.evaluate(() => screenText());
    throw new Error(`no ${pattern} on the screen: ${error.message}\n${now}`);
  }
  return page.evaluate(() => screenText());
}

async function type(text) {
  await page.keyboard.type(text);
}

async function run(command) {
  await type(command);
  await page.keyboard.press("Enter");
}

// Runs a command on a clear screen and gives what it printed. That it has ended is told by a number that the typed line does
// not show.
let runs = 0;
async function output(command) {
  runs += 1;
  await run(`clear; ${command}; echo done $((${runs}*1000))`);
  const text = await screen(new RegExp(`^done ${runs}000$`));
  return text.slice(0, text.indexOf(`done ${runs}000`)).trim();
}

// Starts a program that takes the whole screen; left() waits until it has given it back.
async function enter(name, command) {
  await run(`clear; ${command}; echo left ${name} $((6*7))`);
}

async function left(name) {
  await screen(new RegExp(`^left ${name} 42$`));
}

const seen = {};
try {
  await page.goto(`http://127.0.0.1:${port}/`);
  seen.fitted = await page.evaluate(([server, secret, fields]) => start(server, secret, fields), [
    rest,
    token,
    { argv: ["/bin/bash", "--norc", "--noprofile", "-i"], env: { PS1: "$ ", LC_ALL: "C.UTF-8" } },
  ]);
  seen.hello = await output("echo hello-$((6*7))");
  seen.size = await output("stty size");
  seen.characters = await output("printf '%b\\n' 'gr\\xc3\\xbc\\xc3\\x9fe \\xf0\\x9f\\x98\\x80'");

  await page.setViewportSize(SMALL);
  await page.waitForFunction(([cols]) => size().cols < cols, [seen.fitted.cols]);
  seen.refitted = await page.evaluate(() => size());
  // The size goes by another socket than the keys, and may come after them.
  const wanted = `${seen.refitted.rows} ${seen.refitted.cols}`;
  seen.resized = await output(`until [ "$(stty size)" = "${wanted}" ]; do sleep 0.1; done; stty size`);

  await enter("vim", "vim -u NONE -N note.txt");
  await screen(/"note\.txt" \[New\]/);
  await type("i");
  await screen(/-- INSERT --/);
  await run("written in vim");
  await type("and one line more");
  await page.keyboard.press("Escape");
  seen.vim = await screen(/^written in vim\s*\n^and one line more\s*\n^~/);
  await run(":wq");
  await left("vim");
  seen.written = await output("cat note.txt");

  await enter("top", "top -d 1");
  seen.top = await screen(/load average[^]*^ +PID USER/);
  await type("q");
  await left("top");

  await enter("tmux", "tmux -S ./tmux.sock -f /dev/null new-session -s inner");
  await screen(/^\[inner\] /);
  await page.keyboard.press("Control+b");
  await type("%");
  seen.tmux = await screen(/│/);
  await run("tmux display-message -p 'panes #{window_panes}'");
  seen.panes = Number((await screen(/panes \d+\s*$/)).match(/panes (\d+)\s*$/m)[1]);
  await run("tmux kill-server");
  await left("tmux");

  await run("exit 7");
  await page.waitForFunction(() => seen.closed !== null);
  seen.closed = await page.evaluate(() => seen.closed);
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
  pages.close();
}
