/** Camel case here, snake case on the wire. Maps whose names are data keep them. */

const DATA = new Set(["costs", "attributes", "above"]);

const NAMES_MAX = 256;

/** Names come back with every answer: each is spelled once. What a server invents fills no memory. */
function cached(spell: (name: string) => string): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    let spelled = known.get(name);
    if (spelled === undefined) {
      spelled = spell(name);
      if (known.size < NAMES_MAX) known.set(name, spelled);
    }
    return spelled;
  };
}

const camel = cached((name) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()));
const snake = cached((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));

function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename));
  const members: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[name];
    const known = DATA.has(name) ? member : renamed(member, rename);
    const spelled = rename(name);
    // A member `__proto__` is a member.
    if (spelled === "__proto__") Object.defineProperty(members, spelled, { value: known, enumerable: true, writable: true, configurable: true });
    else members[spelled] = known;
  }
  return members;
}

/** Members of an answer, in camel case. */
export function fromWire(value: unknown): unknown {
  return renamed(value, camel);
}

/** Members of a request, in snake case; those that are undefined are left out by JSON. */
export function toWire(value: unknown): unknown {
  return renamed(value, snake);
}
