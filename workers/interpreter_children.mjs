// Descendants of this process that block it: found in /proc, told to end.
import fs from 'node:fs';

const TICKS_A_SECOND = 100; // what Linux shows to programs, on every architecture that node has

/* Signals all descendants that were started after began (milliseconds since 1970), and nothing older: what an earlier
 * cell left running stays. */
export function endChildrenSince(began, signal) {
  const uptime = Number(fs.readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
  const beganTicks = (uptime - (Date.now() - began) / 1000) * TICKS_A_SECOND - 2;
  const parents = new Map();
  for (const pid of fs.readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // from the third on: state, parent, …
      if (Number(fields[19]) >= beganTicks) parents.set(Number(pid), Number(fields[1]));
    } catch {} // it has ended meanwhile
  }
  const ours = (pid) => pid === process.pid || (parents.has(pid) && ours(parents.get(pid)));
  for (const pid of parents.keys()) {
    if (!ours(pid) || pid === process.pid) continue;
    try {
      process.kill(pid, signal);
    } catch {} // it has ended meanwhile
  }
}
