// Uses a terminal through the npm package ws, as a program in Node would, and prints what it saw as one line of JSON.
// Run by tests/lua/http/pty_clients_spec.lua:
//   node ws_client.mjs REST_URL    with the server's token in ABX_TEST_TOKEN
import WebSocket from "ws";

const TIMEOUT_MS = 120000;
const [rest] = process.argv.slice(2);
const token = process.env.ABX_TEST_TOKEN;

// One connection: what the server said in JSON, its output, and how the connection ended.
class Session {
  constructor(url, protocols, options) {
    this.socket = new WebSocket(url, protocols, options);
    this.said = [];
    this.output = Buffer.alloc(0);
    this.errors = [];
    this.waiting = new Set();
    this.socket.on("message", (data, isBinary) => {
      if (isBinary) this.output = Buffer.concat([this.output, data]);
      else this.said.push(JSON.parse(data.toString("utf8")));
      this.changed();
    });
    this.socket.on("error", (error) => this.errors.push(error.code ?? error.message));
    this.socket.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString("utf8") };
      this.changed();
    });
  }

  changed() {
    for (const check of this.waiting) check();
  }

  // Resolves once test() gives something, which it resolves to.
  until(what, test) {
    return new Promise((resolve, reject) => {
      const check = () => {
        const result = test();
        if (!result && !this.closed && !timedOut) return;
        clearTimeout(timer);
        this.waiting.delete(check);
        if (result) resolve(result);
        else reject(new Error(`no ${what}; ${JSON.stringify({ closed: this.closed, errors: this.errors, said: this.said })}; ` +
          `the output ended in ${JSON.stringify(this.output.toString("utf8").slice(-400))}`));
      };
      let timedOut = false;
      const timer = setTimeout(() => {
        timedOut = true;
        check();
      }, TIMEOUT_MS);
      this.waiting.add(check);
      check();
    });
  }

  type(text) {
    this.socket.send(JSON.stringify({ type: "input", data: text }));
  }

  message(kind) {
    return this.until(kind, () => this.said.find((said) => said.type === kind));
  }

  text(text) {
    return this.until(JSON.stringify(text), () => this.output.includes(text));
  }

  close() {
    return this.until("close", () => this.closed);
  }
}

async function create(fields) {
  const answer = await fetch(`${rest}/pty`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(fields),
  });
  if (answer.status !== 201) throw new Error(`POST /pty: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

const BY_HEADER = { headers: { authorization: `Bearer ${token}` } };
const terminal = await create({ argv: ["/bin/bash", "--norc", "--noprofile", "-i"] });
const seen = { id: terminal.id };

// Connect, send a command, receive its output, disconnect.
const first = new Session(terminal.ws_url, ["abx.pty.v1", `bearer.${token}`]);
seen.ready = await first.message("ready");
seen.protocol = first.socket.protocol;
first.type("echo hello-$((6*7))\n");
await first.text("hello-42\r\n");
first.socket.close(1000);
seen.left = (await first.close()).code;
const offset = seen.ready.offset + first.output.length;

// Reconnect where the first connection ended; a third one tells whether a byte came twice or is missing.
const second = new Session(`${terminal.ws_url}?since=${offset}`, BY_HEADER);
seen.resumed = { asked: offset, ready: await second.message("ready") };
second.type("echo again-$((7*6))\n");
await second.text("again-42\r\n");
const whole = new Session(`${terminal.ws_url}?since=${seen.ready.offset}&access=ro`, [], BY_HEADER);
const parts = Buffer.concat([first.output, second.output]);
await whole.until("all output", () => whole.output.length >= parts.length);
seen.resumed.same = whole.output.subarray(0, parts.length).equals(parts);
whole.socket.close();
await whole.close();

// A message that is far too long ends its own connection only.
const big = new Session(terminal.ws_url, BY_HEADER);
await big.message("ready");
big.socket.send(JSON.stringify({ type: "input", data: "x".repeat(20 * 1024 * 1024) }));
seen.too_long = { ...(await big.close()), errors: big.errors };
second.type("echo still-$((6*7))\n");
await second.text("still-42\r\n");
seen.alive = second.closed === undefined;

second.type("exit 3\n");
seen.exit = await second.message("exit");
seen.closed = await second.close();

const unknown = new Session(terminal.ws_url.replace(/[^/]*$/, "p-000000000000"), BY_HEADER);
seen.unknown = await unknown.close();

console.log(JSON.stringify(seen));
