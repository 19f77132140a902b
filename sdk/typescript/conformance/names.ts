/** The tables speak as the wire does, in snake case; the package in camel case. */

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Json = any;

export const toCamel = (value: Json): Json => renamed(value, (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()));
export const toSnake = (value: Json): Json => renamed(value, (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));

function renamed(value: Json, rename: (name: string) => string): Json {
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      rename(name),
      name === "costs" || name === "attributes" ? member : renamed(member, rename),
    ]),
  );
}
