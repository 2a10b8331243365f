// Pictures and documents on their way to abxd: files in our TMPDIR, which it opens and takes the names of.
import { rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Refusal } from './failure.mjs';

const BYTES_MAX = 64 * 1024 * 1024; // abxd takes no more
const TAKEN_WITHIN_MS = 10000;

let count = 0;

/* What the answer tells of it. `what` is "the picture", `advice` how it would become smaller. */
export async function hand(bytes, mediaType, call, what, advice) {
  if (bytes.length === 0) throw new Error(`the browser made an empty file of ${what}`);
  if (bytes.length > BYTES_MAX)
    throw new Refusal('payload_too_large', `${what} has ${bytes.length} bytes, more than ${BYTES_MAX}: ${advice}`);
  const name = `picture-${++count}`;
  const file = path.join(os.tmpdir(), name);
  try {
    await writeFile(file, bytes, { mode: 0o600, flag: 'wx', signal: call.signal });
  } catch (error) {
    if (error.code === 'ENOSPC' || error.code === 'EDQUOT')
      throw new Refusal('no_space', `${what} cannot be stored: ${error.message}`);
    throw error;
  } finally {
    // Whoever asked may be gone: then nobody takes it.
    call.over.then((isAnswered) => sleep(isAnswered ? TAKEN_WITHIN_MS : 0, null, { ref: false }))
      .then(() => rm(file, { force: true })).catch(() => {});
  }
  return { media_type: mediaType, file: name, size: bytes.length };
}
