// POST /browser/screenshot: what the viewport shows, the whole page, or one element.
import { elementFailure } from './element.mjs';
import { hand } from './picture.mjs';
import { askWorld } from './world.mjs';

const SIDE_MAX = 16384; // beyond it Chromium gives empty pictures, or takes half a minute
const AREA_MAX = SIDE_MAX * 4096; // four times as much takes as long

export const waitsFor = ({ selector }) =>
  (selector === undefined ? 'the picture' : `the element "${String(selector).slice(0, 200)}"`);

/* In the page: the size of all of it; null of a document without a body, for which the library waits. */
function sizeOf({ body, documentElement }) {
  const most = (name) => Math.max(body[name], documentElement[name]);
  return body && documentElement && { width: most('scrollWidth'), height: most('scrollHeight') };
}

/* In the page: where the element is in it. */
function placeOf(element) {
  const { left, top, width, height } = element.getBoundingClientRect();
  return { x: left + scrollX, y: top + scrollY, width, height };
}

const isDetached = (error) => /not attached to the DOM|was detached/.test(error.message);
/* The upper left part of it that a picture may have; all of it where that is not too large. */
function part({ x = 0, y = 0, width, height }) {
  const right = Math.min(width, SIDE_MAX);
  return { x, y, width: right, height: Math.min(height, SIDE_MAX, Math.max(1, Math.floor(AREA_MAX / right))) };
}

const isLarge = (size) => part(size).width < size.width || part(size).height < size.height;

function pngSize(bytes) {
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/* The first frame header of the segments. */
function jpegSize(bytes) {
  for (let at = 2; at + 9 < bytes.length; at += 2 + bytes.readUInt16BE(at + 2)) {
    const kind = bytes[at + 1];
    if (kind >= 0xc0 && kind <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(kind))
      return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
  }
  return {};
}

async function takeElement(tab, { selector }, options, call) {
  const bounds = () => ({ timeout: call.left(), signal: call.signal });
  for (;;) {
    try {
      const element = await tab.page.waitForSelector(selector, { state: 'visible', ...bounds() });
      try {
        const box = await element.boundingBox();
        if (!box || !isLarge(box)) return { bytes: await element.screenshot({ ...options, ...bounds() }), clipped: false };
      } finally {
        element.dispose().catch(() => {});
      }
      const place = await askWorld(tab, placeOf, [], { selector, call });
      return { bytes: await tab.page.screenshot({ ...options, fullPage: true, clip: part(place), ...bounds() }), clipped: true };
    } catch (error) {
      if (isDetached(error) && !call.isOver) continue; // a new one may have taken its place
      throw await elementFailure(tab, error, selector, call);
    }
  }
}

async function takePage(tab, { full_page: isFull = false }, options, call) {
  const bounds = () => ({ timeout: call.left(), signal: call.signal });
  const size = isFull ? await askWorld(tab, sizeOf, [], { call }) : null;
  const clipped = size !== null && isLarge(size);
  const clip = clipped ? { clip: part(size) } : {};
  return { bytes: await tab.page.screenshot({ ...options, fullPage: size !== null, ...clip, ...bounds() }), clipped };
}

export async function screenshot(tab, params, call) {
  const type = params.format ?? 'png';
  const options = { type, ...(params.quality && { quality: params.quality }) };
  const take = params.selector === undefined ? takePage : takeElement;
  let taken;
  try {
    taken = await take(tab, params, options, call);
  } catch (error) {
    if (error.name === 'TimeoutError') throw call.tooLate();
    throw error;
  }
  const { bytes, clipped } = taken;
  const told = await hand(bytes, `image/${type}`, call, 'the picture', 'take jpeg, or a part');
  return { ...told, ...(type === 'png' ? pngSize : jpegSize)(bytes), clipped };
}
