// What a script in a page came to, as plain JSON.

/* Runs in the page, sent as text: [type, JSON's idea of the value, whether that is too long]. get() makes the value; a
 * function is called with the argument, as Playwright does. It copies into plain objects, and leaves JSON to the
 * inspector: the page may have a notion of its own of that, and of toJSON. */
export async function take(get, argument, depthMax, charsMax) {
  'use strict';
  let left = charsMax;
  const above = []; // the objects that the one at work is in
  const tagOf = (value) => Object.prototype.toString.call(value).slice(8, -1);
  const typeOf = (value) => {
    if (value === null) return 'null';
    if (typeof value !== 'object') return typeof value;
    const tag = tagOf(value);
    if (tag === 'Array' || Array.isArray(value)) return 'array';
    if (tag === 'Window') return 'window';
    if (value instanceof Error || tag === 'Error') return 'error';
    if (typeof value.nodeType === 'number' && typeof value.nodeName === 'string') return 'node';
    if (ArrayBuffer.isView(value)) return 'typedarray';
    return ['Date', 'RegExp', 'Map', 'Set', 'Promise'].includes(tag) ? tag.toLowerCase() : 'object';
  };
  const members = (value) => {
    const copy = Object.create(null);
    for (const key of Object.keys(value)) {
      if (left < 0) break;
      const item = copyOf(value[key]);
      if (item === undefined) continue;
      left -= key.length;
      copy[key] = item;
    }
    return copy;
  };
  const items = (value) => {
    const copy = [];
    for (const item of value) {
      if (left < 0) break;
      copy[copy.length] = copyOf(item) ?? null;
    }
    return copy;
  };
  const inside = (type, value) => {
    if (type === 'error') return { name: String(value.name), message: copyOf(String(value.message)) };
    if (type === 'object' || value instanceof DataView) return members(value);
    return items(value);
  };
  // undefined: what JSON leaves out
  const copyOf = (value) => {
    left -= 2;
    const type = typeOf(value);
    switch (type) {
    case 'string':
      left -= value.length;
      return left < 0 ? null : value;
    case 'number':
      return Number.isFinite(value) ? value + 0 : null;
    case 'boolean':
    case 'null':
      return value;
    case 'bigint':
    case 'regexp':
      return copyOf(String(value));
    case 'date':
      return Number.isNaN(value.getTime()) ? null : value.toISOString();
    case 'undefined':
    case 'function':
    case 'symbol':
      return undefined;
    case 'node':
    case 'window':
    case 'promise':
      return null;
    }
    if (left < 0) return null;
    if (above.length >= depthMax) return '…';
    for (const one of above) if (one === value) return '[Circular]';
    above[above.length] = value;
    const copy = inside(type, value);
    above.length -= 1;
    return copy;
  };
  let value = await get();
  if (typeof value === 'function') value = await value(argument);
  const result = copyOf(value) ?? null;
  return left < 0 ? [typeOf(value), null, true] : [typeOf(value), result, false];
}
