/** Middleware for Next.js (`middleware.ts`, since Next 16 `proxy.ts`), and for any server whose handler takes a `Request`. */
import { Guard, type GuardSettings } from "./middleware/guard.js";
import { pathOf } from "./middleware/path.js";

/** A response ends here, so real costs are not known: there is no `settle`. One of `address` and `identify` is needed. */
export interface NextSettings<Req extends Request = Request> extends Omit<GuardSettings<Req>, "settle"> {
  /** The caller's address, from the field that only your platform writes: Next itself does not say who connected. */
  address?: ((request: Req) => string | undefined) | undefined;
}

/** `export const middleware = tollgate({ … })` */
export function tollgate<Req extends Request = Request>(settings: NextSettings<Req>): (request: Req) => Promise<Response> {
  const { address, identify } = settings;
  if (address === undefined && identify === undefined) {
    throw new TypeError("tollgate/next: say who is asking, by `address` or `identify`: Next does not know");
  }
  const guard = new Guard<Req>(settings);
  return async (request) => {
    const admission = await guard.admit(request, {
      method: request.method,
      path: pathOf(request.url),
      peer: address?.(request),
      forwardedFor: request.headers.get("x-forwarded-for") ?? undefined,
    });
    if (admission.refusal !== undefined) {
      const { status, fields, body } = admission.refusal;
      return new Response(body, { status, headers: fields });
    }
    // What NextResponse.next() makes: go on, with these fields on the application's response.
    return new Response(null, { headers: [["x-middleware-next", "1"], ...admission.fields] });
  };
}
