/** Middleware for Hono, on Node, Bun, Deno and edge runtimes. */
import type { Context, MiddlewareHandler } from "hono";
import { Guard, type GuardSettings } from "./middleware/guard.js";
import { pathOf } from "./middleware/path.js";

export interface HonoSettings extends GuardSettings<Context, Response> {
  /** The peer of the connection; by default what Node, Bun and Deno say. Edge runtimes: the field that only the platform writes. */
  address?: ((context: Context) => string | undefined) | undefined;
}

/** `app.use(tollgate({ … }))` on the outermost application, before its routes. */
export function tollgate(settings: HonoSettings = {}): MiddlewareHandler {
  const guard = new Guard<Context, Response>(settings);
  const address = settings.address ?? peerOf;
  return async (context, next) => {
    const admission = await guard.admit(context, {
      method: context.req.method,
      path: pathOf(context.req.raw.url),
      peer: address(context),
      forwardedFor: context.req.header("x-forwarded-for"), // Headers joins fields of one name
    });
    if (admission.refusal !== undefined) {
      const { status, fields, body } = admission.refusal;
      return new Response(body, { status, headers: fields });
    }
    let response: Response | undefined;
    try {
      await next();
      response = context.res;
      for (const [name, value] of admission.fields) context.header(name, value);
    } finally {
      outlive(context, admission.settle(response));
    }
    return undefined;
  };
}

/** The response does not wait for it; edge runtimes must be told to. */
function outlive(context: Context, settled: Promise<void>): void {
  try {
    context.executionCtx.waitUntil(settled);
  } catch {
    // Node, Bun and Deno have no such context, and need none.
  }
}

/** What the runtimes hand to Hono: Node's incoming message, Bun's server, Deno's connection. */
interface Bindings {
  incoming?: { socket?: { remoteAddress?: string } };
  server?: { requestIP(request: Request): { address: string } | null };
  requestIP?(request: Request): { address: string } | null;
  remoteAddr?: { hostname?: string };
}

function peerOf(context: Context): string | undefined {
  const bindings = (context.env ?? {}) as Bindings;
  const bun = bindings.server ?? (bindings.requestIP ? (bindings as Required<Bindings>) : undefined);
  return (
    bindings.incoming?.socket?.remoteAddress ??
    bun?.requestIP(context.req.raw)?.address ??
    bindings.remoteAddr?.hostname
  );
}
