import { TollgateError } from "./errors.js";
import type { CheckRequest } from "./types.js";

const PATH_BYTES_MAX = 8192;
const METHOD_BYTES_MAX = 64;
const VALUE_BYTES_MAX = 4096;
const VALUES = ["clientKey", "apiKey", "userId", "ip", "org", "tier", "namespace"] as const;

/**
 * Why the server cannot read a text of a request, if it cannot. A server that gets much more than it reads closes the connection, and
 * that would look like an outage, for which the fail policy may pass requests: the length of a text must not choose it.
 */
export function unreadable(request: CheckRequest): TollgateError | undefined {
  const { endpoint } = request;
  if (typeof endpoint === "string") {
    if (!isText(endpoint)) return malformed("bad_text", "endpoint", "is not Unicode");
    const path = endpoint.slice(Math.max(0, endpoint.indexOf("/"))).split(/[?#]/, 1)[0] ?? "";
    if (longer(path, PATH_BYTES_MAX) || longer(endpoint, PATH_BYTES_MAX + METHOD_BYTES_MAX)) {
      return malformed("path_too_long", "endpoint", `the path is longer than ${PATH_BYTES_MAX} bytes`);
    }
  }
  const known = VALUES.map((name): [string, unknown] => [name, request[name]]);
  for (const [name, value] of [...known, ...Object.entries(request.attributes ?? {})]) {
    if (typeof value !== "string") continue;
    if (!isText(value)) return malformed("bad_text", name, "is not Unicode");
    if (longer(value, VALUE_BYTES_MAX)) return malformed("value_too_long", name, `use at most ${VALUE_BYTES_MAX} bytes`);
  }
  return undefined;
}

function malformed(code: string, field: string, detail: string): TollgateError {
  return new TollgateError(code, `${field}: ${detail}`, 400, undefined, field);
}

function longer(text: string, most: number): boolean {
  if (text.length > most) return true;
  return text.length > most / 3 && new TextEncoder().encode(text).length > most; // a unit of UTF-16 has at most three bytes
}

/** JSON can write half of a surrogate pair; no server reads it. */
function isText(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}
