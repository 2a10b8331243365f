// Which addresses pages may reach. Everything that listens in the sandbox counts as what the agent works on, except the
// server itself; what answers every program that only asks (metadata services) is refused.
import net from 'node:net';
import os from 'node:os';

const LINK_LOCAL = [['169.254.0.0', 16, 'ipv4'], ['fe80::', 10, 'ipv6']];
// Addresses of metadata services that are not link-local: AWS, Google, Alibaba, Oracle, Azure.
const METADATA = [
  ['fd00:ec2::254', 'ipv6'], ['fd20:ce::254', 'ipv6'], ['100.100.100.200', 'ipv4'], ['192.0.0.192', 'ipv4'],
  ['168.63.129.16', 'ipv4'],
];
// 0.0.0.0/8 and :: lead to this machine, too.
const HERE = [['127.0.0.0', 8, 'ipv4'], ['0.0.0.0', 8, 'ipv4'], ['::', 127, 'ipv6']];

function blockList(subnets, addresses) {
  const list = new net.BlockList();
  for (const subnet of subnets) list.addSubnet(...subnet);
  for (const address of addresses) list.addAddress(...address);
  return list;
}
const linkLocal = blockList(LINK_LOCAL, []);
const metadata = blockList([], METADATA);
const here = blockList(HERE, []);

const within = (list, address) => list.check(address, net.isIPv6(address) ? 'ipv6' : 'ipv4');

/* The eight groups of an IPv6 address. */
function groupsOf(address) {
  const { hostname } = new URL(`http://[${address}]`); // the one form: no dotted part
  const [head, tail] = hostname.slice(1, -1).split('::').map((part) => (part === '' ? [] : part.split(':')));
  const groups = tail ? [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail] : head;
  return groups.map((group) => Number.parseInt(group, 16));
}

const dotted = (high, low) => [high >> 8, high & 255, low >> 8, low & 255].join('.');

/* The address and each IPv4 address that it stands for: mapped and compatible ones, NAT64 (RFC 6052, RFC 8215), 6to4. */
function meanings(address) {
  if (!net.isIPv6(address)) return [address];
  const plain = address.split('%')[0];
  const groups = groupsOf(plain);
  const all = [plain];
  const zeros = (from, to) => groups.slice(from, to).every((group) => group === 0);
  const mapped = zeros(0, 5) && (groups[5] === 0xffff || (groups[5] === 0 && groups[6] !== 0));
  const translated = zeros(0, 4) && groups[4] === 0xffff && groups[5] === 0;
  const nat64 = groups[0] === 0x64 && groups[1] === 0xff9b && (zeros(2, 6) || groups[2] === 1);
  if (mapped || translated || nat64) all.push(dotted(groups[6], groups[7]));
  if (groups[0] === 0x2002) all.push(dotted(groups[1], groups[2]));
  return all;
}

/* Those of this machine may change while it runs. */
const isOfThisMachine = (address) => within(here, address)
  || Object.values(os.networkInterfaces()).flat().some((one) => one.address === address);

/* Why nothing may connect to that address and port; null: it may. `ports` are the server's own. */
export function whyRefused(address, port, ports) {
  for (const meaning of meanings(address)) {
    if (within(linkLocal, meaning)) return 'a link-local address';
    if (within(metadata, meaning)) return 'the address of a metadata service';
    if (ports.has(port) && isOfThisMachine(meaning)) return "a port of the server's own";
  }
  return null;
}

/* "host", "host:port", "*.suffix", an address; IPv6 in brackets where a port follows. */
function readRule(text) {
  const [, name, port] = net.isIPv6(text) ? [text, text] : /^(.*?)(?::(\d+))?$/.exec(text);
  return { name: plainHost(name), port: port && Number(port) };
}

/* As hosts are compared: lower case, no brackets, no dot at the end. */
export function plainHost(host) {
  return host.toLowerCase().replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
}

/* `(host, addresses, port) → boolean`: whether the operator allowed that host, or each of its addresses, in any case. */
export function allowRules(entries) {
  const rules = entries.map(readRule);
  const named = (text, port) => rules.some((rule) => (rule.port === undefined || rule.port === port)
    && (rule.name.startsWith('*.') ? text.endsWith(rule.name.slice(1)) : text === rule.name));
  return (host, addresses, port) => named(host, port)
    || (addresses.length > 0 && addresses.every(({ address }) => named(address, port)));
}
