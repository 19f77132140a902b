/** Middleware for Express 4 and 5, and for anything else with its signature. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Facts, Guard, type GuardSettings } from "./middleware/guard.js";
import { pathOf } from "./middleware/path.js";

/** What is read of Express's request; a bare `IncomingMessage` has less, and works too. */
export type ExpressRequest = IncomingMessage & {
  baseUrl?: string;
  path?: string;
};

export type ExpressSettings<Req extends ExpressRequest = ExpressRequest, Res extends ServerResponse = ServerResponse> = GuardSettings<Req, Res>;

/** `app.use(tollgate({ … }))`, before the routes that it protects. */
export function tollgate<Req extends ExpressRequest = ExpressRequest, Res extends ServerResponse = ServerResponse>(
  settings: ExpressSettings<Req, Res> = {},
): (request: Req, response: Res, next: (error?: unknown) => void) => void {
  const guard = new Guard<Req, Res>(settings);
  return (request, response, next) => {
    protect(guard, request, response).then((pass) => pass && next(), next);
  };
}

/** True if the handler may run; else the response is written. */
export async function protect<Req extends ExpressRequest, Res extends ServerResponse>(
  guard: Guard<Req, Res>,
  request: Req,
  response: Res,
): Promise<boolean> {
  const admission = await guard.admit(request, factsOf(request));
  if (admission.refusal !== undefined) {
    const { status, fields, body } = admission.refusal;
    response.statusCode = status;
    for (const [name, value] of fields) response.setHeader(name, value);
    response.end(body);
    return false;
  }
  // The caller has gone while the server was asked: what was reserved is given back, and no handler runs.
  if (response.destroyed || response.writableEnded) {
    await admission.settle(undefined);
    return false;
  }
  for (const [name, value] of admission.fields) response.setHeader(name, value);
  // After the last byte, or when the caller goes away: `close` comes once in any case.
  response.once("close", () => void admission.settle(response));
  return true;
}

/**
 * The path is what the router matches: `url` may have been rewritten, and lacks the path of the mount (`app.use("/api", …)`),
 * which is in `baseUrl`. Express's own reading of the target counts, because it is the one that chooses the handler.
 */
export function factsOf(request: ExpressRequest): Facts {
  return {
    method: request.method ?? "GET",
    path: (request.baseUrl ?? "") + (request.path ?? pathOf(request.url ?? "/")),
    peer: request.socket.remoteAddress,
    forwardedFor: request.headers["x-forwarded-for"] as string | undefined, // Node joins fields of one name
    // Applications fold case by default, and so does each router in them, whatever the setting of the application.
    caseInsensitive: true,
  };
}
