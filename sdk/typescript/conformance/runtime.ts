import { serve } from "@hono/node-server";

export type Handle = (request: Request, runtime: unknown) => Response | Promise<Response>;

/** What is used of the globals of Bun and Deno; Node has neither. */
const { Bun, Deno } = globalThis as {
  Bun?: { serve(options: { port: number; hostname: string; development: boolean; fetch: Handle }): { port: number } };
  Deno?: { serve(options: { port: number; hostname: string; onListen(): void }, handle: Handle): { addr: { port: number } } };
};

/** Serves `Request`s as the runtime itself does, and passes on what it says of the connection; the port. */
export async function serveRequests(handle: Handle): Promise<number> {
  const hostname = "127.0.0.1";
  if (Bun !== undefined) return Bun.serve({ port: 0, hostname, development: false, fetch: handle }).port;
  if (Deno !== undefined) return Deno.serve({ port: 0, hostname, onListen: () => {} }, handle).addr.port;
  return new Promise((resolve) => serve({ fetch: handle as never, port: 0, hostname }, ({ port }) => resolve(port)));
}
