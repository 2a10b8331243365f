// JSON-RPC 2.0 in lines over descriptor 3: how a worker in JavaScript hears abxd, and answers. Writes never block: what
// abxd has not read yet waits in memory, so whoever sends much bounds it.
import { Socket } from 'node:net';

const CHANNEL_FD = 3;
const NEWLINE = 10;

// Half of a pair, as slices of emoji leave it, is written as an escape, which no strict reader takes.
const whole = (text) => text.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, (found) => (found === '\\\\' ? found : '\ufffd'));

/* Calls receive({id, method, params}) for each message (a notification, such as cancel, has no id), and end() once: when
 * the channel closes, or what comes is no JSON. Nothing is received after that.
 * Returns { answer(id, result), refuse(id, code, message, data), send(text) }; send takes a whole message as JSON. */
export function openChannel({ receive, end }) {
  const socket = new Socket({ fd: CHANNEL_FD, readable: true, writable: true });
  let ended = false;
  const endOnce = () => {
    if (ended) return;
    ended = true;
    socket.destroy();
    end();
  };
  for (const event of ['end', 'error', 'close']) socket.on(event, endOnce);

  let pieces = [];
  socket.on('data', (chunk) => {
    for (let newline; !ended && (newline = chunk.indexOf(NEWLINE)) >= 0; chunk = chunk.subarray(newline + 1)) {
      const line = Buffer.concat([...pieces, chunk.subarray(0, newline)]).toString();
      pieces = [];
      let message;
      try {
        message = JSON.parse(line);
      } catch {
        return endOnce();
      }
      receive(message);
    }
    if (chunk.length > 0) pieces.push(chunk);
  });

  const send = (text) => {
    if (!ended) socket.write(`${text.includes('\\ud') ? whole(text) : text}\n`);
  };
  return {
    send,
    answer: (id, result) => send(JSON.stringify({ jsonrpc: '2.0', id, result })),
    refuse: (id, code, message, data) =>
      send(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, ...(data && { data }) } })),
  };
}
