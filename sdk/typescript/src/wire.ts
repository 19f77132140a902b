/** Camel case here, snake case on the wire. Maps whose names are data keep them. */

const DATA = new Set(["costs", "attributes", "above"]);

/** Members of an answer, in camel case. */
export function fromWire(value: unknown): unknown {
  return renamed(value, (name) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()));
}

/** Members of a request, in snake case; those that are undefined are left out by JSON. */
export function toWire(value: unknown): unknown {
  return renamed(value, (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}

function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename));
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [
    rename(name),
    DATA.has(name) ? member : renamed(member, rename),
  ]);
  return Object.fromEntries(members);
}
