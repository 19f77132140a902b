import { serveExpress } from "./express.js";
import { serveFastify } from "./fastify.js";
import { serveFetch } from "./fetch.js";
import { serveHono } from "./hono.js";
import { serveNest } from "./nest.js";
import { serveNext } from "./next.js";

const FRAMEWORKS: Record<string, () => Promise<number>> = {
  express: serveExpress,
  fastify: serveFastify,
  fetch: serveFetch,
  hono: serveHono,
  nest: serveNest,
  next: serveNext,
};

/** Serves the example application behind the middleware of a framework; its address. */
export async function serve(framework: string): Promise<string> {
  const start = FRAMEWORKS[framework];
  if (start === undefined) throw new Error(`no such framework: ${framework}`);
  return `http://127.0.0.1:${await start()}`;
}
