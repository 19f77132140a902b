/** Addresses of callers: 16 bytes, IPv4 in its mapped form, so that spellings compare as equal. */

/** The bytes of an IPv4 or IPv6 address; undefined for anything else, such as one with a port or a leading zero. */
export function parseAddress(text: string): Uint8Array | undefined {
  return text.includes(":") ? parseV6(text) : mapped(parseV4(text));
}

/** A network, such as `10.0.0.0/8`, or one address. */
export interface Network {
  bytes: Uint8Array;
  bits: number;
}

export function parseNetwork(text: string): Network {
  const [address = "", length, ...rest] = text.trim().split("/");
  const bytes = parseAddress(address);
  const width = address.includes(":") ? 128 : 32;
  const bits = length === undefined ? width : /^\d{1,3}$/.test(length) ? Number(length) : Number.NaN;
  if (bytes === undefined || rest.length > 0 || !(bits <= width)) {
    throw new TypeError(`trustedProxies: ${text} is no network; write 10.0.0.0/8 or 2001:db8::/32`);
  }
  return { bytes, bits: bits + 128 - width };
}

/**
 * The caller: the peer of the connection, or the last address of `X-Forwarded-For` that no trusted proxy has. Each entry
 * counts only if the one after it (for the last: the connection) is a trusted proxy; one that is no address ends the walk.
 */
export function clientAddress(peer: string | undefined, forwardedFor: string | undefined, trusted: readonly Network[]): string | undefined {
  let client = peer?.replace(/%.*$/, ""); // the zone of a link-local address
  const entries = forwardedFor?.split(",").reverse() ?? [];
  for (const entry of entries) {
    const bytes = client === undefined ? undefined : parseAddress(client);
    if (bytes === undefined || !trusted.some((network) => contains(network, bytes))) break;
    const address = entry.trim();
    if (parseAddress(address) === undefined) break;
    client = address;
  }
  return client;
}

function contains(network: Network, bytes: Uint8Array): boolean {
  const whole = network.bits >> 3;
  for (let index = 0; index < whole; index += 1) if (network.bytes[index] !== bytes[index]) return false;
  const mask = 0xff00 >> (network.bits & 7);
  return (((network.bytes[whole] ?? 0) ^ (bytes[whole] ?? 0)) & mask & 0xff) === 0;
}

function parseV4(text: string): number[] | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)) return undefined;
  return parts.map(Number);
}

function mapped(v4: number[] | undefined): Uint8Array | undefined {
  return v4 && Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...v4]);
}

function parseV6(text: string): Uint8Array | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const head = bytesOf(halves[0] ?? "", halves.length === 1);
  const tail = bytesOf(halves[1] ?? "", true);
  if (head === undefined || tail === undefined) return undefined;
  const missing = 16 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 2) return undefined;
  return Uint8Array.from([...head, ...Array<number>(missing).fill(0), ...tail]);
}

/** Groups of hexadecimal digits; the last may be an IPv4 address. */
function bytesOf(text: string, isEnd: boolean): number[] | undefined {
  if (text === "") return [];
  const groups = text.split(":");
  const bytes: number[] = [];
  for (const [index, group] of groups.entries()) {
    const v4 = isEnd && index === groups.length - 1 && group.includes(".") ? parseV4(group) : undefined;
    if (v4 !== undefined) bytes.push(...v4);
    else if (/^[0-9a-fA-F]{1,4}$/.test(group)) bytes.push(Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255);
    else return undefined;
  }
  return bytes;
}
