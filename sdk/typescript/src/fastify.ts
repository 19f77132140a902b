/** A plugin for Fastify 4 and 5: decides for every route of the instance it is registered with, before bodies are read. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type Facts, Guard, type GuardSettings } from "./middleware/guard.js";
import { pathOf } from "./middleware/path.js";

export type FastifySettings = GuardSettings<FastifyRequest, FastifyReply>;

/** `await app.register(tollgate, { … })` */
export async function tollgate(app: FastifyInstance, settings: FastifySettings): Promise<void> {
  const guard = new Guard<FastifyRequest, FastifyReply>(settings);
  const router = routerSettings(app);

  app.addHook("onRequest", async (request, reply) => {
    const admission = await guard.admit(request, factsOf(request, router));
    if (admission.refusal !== undefined) {
      const { status, fields, body } = admission.refusal;
      return reply.code(status).headers(Object.fromEntries(fields)).send(Buffer.from(body)); // a text would get a charset
    }
    if (reply.raw.destroyed) {
      await admission.settle(undefined); // the caller has gone while the server was asked
      return reply.hijack();
    }
    reply.headers(Object.fromEntries(admission.fields));
    // After the last byte, or when the caller goes away: `close` comes once in any case.
    reply.raw.once("close", () => void admission.settle(reply));
    return undefined;
  });
}

// Fastify gives each plugin a scope of its own; this one is for the scope that registers it (what fastify-plugin does).
Object.assign(tollgate, { [Symbol.for("skip-override")]: true, [Symbol.for("fastify.display-name")]: "tollgate" });

/** What the router does with spellings: Fastify 4 and 5 keep it in different places. */
export interface RouterSettings {
  caseSensitive?: boolean | undefined;
  useSemicolonDelimiter?: boolean | undefined;
}

export function routerSettings(app: Pick<FastifyInstance, "initialConfig">): RouterSettings {
  const config = app.initialConfig as RouterSettings & { routerOptions?: RouterSettings };
  const { routerOptions } = config;
  return {
    caseSensitive: routerOptions?.caseSensitive ?? config.caseSensitive,
    // Fastify fills in `routerOptions` with false beside an option of the application that its router follows.
    useSemicolonDelimiter: routerOptions?.useSemicolonDelimiter || config.useSemicolonDelimiter,
  };
}

export function factsOf(request: FastifyRequest, router: RouterSettings): Facts {
  const path = pathOf(request.raw.url ?? "/");
  return {
    method: request.method,
    path: router.useSemicolonDelimiter ? path.replace(/;.*$/s, "") : path,
    peer: request.raw.socket.remoteAddress,
    forwardedFor: request.raw.headers["x-forwarded-for"] as string | undefined, // Node joins fields of one name
    caseInsensitive: router.caseSensitive === false,
  };
}
