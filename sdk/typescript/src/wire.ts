/** Camel case here, snake case on the wire. Maps whose names are data keep them. */

const DATA = new Set(["costs", "attributes", "above"]);

/** Members of an answer, in camel case. */
export function fromWire(value: unknown): unknown {
  return renamed(value, camel);
}

/** Members of a request, in snake case; those that are undefined are left out by JSON. */
export function toWire(value: unknown): unknown {
  return renamed(value, snake);
}

function camel(name: string): string {
  return name.includes("_") ? name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()) : name;
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename));
  const members: [string, unknown][] = [];
  for (const [name, member] of Object.entries(value)) {
    members.push([rename(name), DATA.has(name) ? member : renamed(member, rename)]);
  }
  return Object.fromEntries(members); // a member `__proto__` is a member
}
