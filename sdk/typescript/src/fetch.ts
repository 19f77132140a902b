/** For servers whose handler takes a `Request`: Bun, Deno, Cloudflare Workers and other edge runtimes, service workers. */
import { Guard, type GuardSettings } from "./middleware/guard.js";
import { pathOf } from "./middleware/path.js";

/** What it gets beside the request is what the runtime passes: Bun its server, Deno the connection, Workers bindings and a context. */
export type Handler<Req extends Request = Request, Rest extends unknown[] = never[]> = (
  request: Req,
  ...rest: Rest
) => Response | Promise<Response>;

export interface FetchSettings<Req extends Request = Request> extends GuardSettings<Req, Response> {
  /** The peer of the connection; by default what Bun and Deno say. Edge runtimes: the field that only the platform writes. */
  address?: ((request: Req) => string | undefined) | undefined;
}

/** `export default { fetch: tollgate({ … }, handler) }`, `Deno.serve(tollgate({ … }, handler))` */
export function tollgate<Req extends Request, Rest extends unknown[]>(
  settings: FetchSettings<Req>,
  handler: Handler<Req, Rest>,
): (request: Req, ...rest: Rest) => Promise<Response> {
  const guard = new Guard<Req, Response>(settings);
  return async (request, ...rest) => {
    const admission = await guard.admit(request, {
      method: request.method,
      path: pathOf(request.url),
      peer: settings.address === undefined ? peerOf(request, rest) : settings.address(request),
      forwardedFor: request.headers.get("x-forwarded-for") ?? undefined, // Headers joins fields of one name
    });
    if (admission.refusal !== undefined) {
      const { status, fields, body } = admission.refusal;
      return new Response(body, { status, headers: fields });
    }
    let response: Response | undefined;
    try {
      response = await handler(request, ...rest);
      return withFields(response, admission.fields);
    } finally {
      outlive(rest, admission.settle(response));
    }
  };
}

/** The response of an upstream has fields that cannot be changed; a copy of it can. */
function withFields(response: Response, fields: [string, string][]): Response {
  if (fields.length === 0) return response;
  try {
    for (const [name, value] of fields) response.headers.set(name, value);
    return response;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return withFields(new Response(response.body, response), fields);
  }
}

interface Runtime {
  /** Bun's server. */
  requestIP?(request: Request): { address: string } | null;
  /** Deno's connection. */
  remoteAddr?: { hostname?: string };
  /** Node's request, by `@hono/node-server`. */
  incoming?: { socket?: { remoteAddress?: string } };
  /** The context of Workers. */
  waitUntil?(promise: Promise<unknown>): void;
}

function peerOf(request: Request, rest: unknown[]): string | undefined {
  const [runtime] = rest as [Runtime?];
  return runtime?.requestIP?.(request)?.address ?? runtime?.remoteAddr?.hostname ?? runtime?.incoming?.socket?.remoteAddress;
}

/** The response does not wait for it; edge runtimes must be told to. */
function outlive(rest: unknown[], settled: Promise<void>): void {
  const context = rest.find((value) => typeof (value as Runtime | null | undefined)?.waitUntil === "function");
  (context as Runtime | undefined)?.waitUntil?.(settled);
}
