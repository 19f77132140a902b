/** The path of a request's target: without query, fragment, and scheme and host of an absolute target; not decoded. */
export function pathOf(target: string): string {
  // An absolute target of another shape stays as it is: the server calls it malformed, and the caller gets 400.
  const path = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?#\\\s@]+(?=\/)/i, "");
  const end = path.search(/[?#]/);
  return end < 0 ? path : path.slice(0, end);
}

/** As a router sees it that folds case, after or before it undoes escapes: letters in lower case, escaped ones too. */
export function foldCase(path: string): string {
  const folded = path.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return encodeURIComponent(decodeURIComponent(escapes).toLowerCase());
    } catch {
      return escapes; // no UTF-8: the server calls it malformed
    }
  });
  return folded.toLowerCase();
}

/**
 * Routers take `/orders/..` for the order `..`, and the server takes it for `/`: it could not be counted as what it is.
 * Clients resolve such segments before they ask.
 */
export function hasDotSegment(path: string): boolean {
  return /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i.test(path);
}

/** Routers answer HEAD by the handler of GET. */
export function endpointOf(method: string, path: string): string {
  return `${method === "HEAD" ? "GET" : method} ${path}`;
}
