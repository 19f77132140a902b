// A hundred consoles are open at once: each is told of what happens, one more is refused, and a place that is free is taken.
"use strict";

const http = require("node:http");
const { ADMIN, signIn, check, until, has, equal } = require("../browser");

const CONSOLES = 100;

/** A stream of live numbers: its status, and how many events came. */
function listen(cookie) {
  const stream = { status: 0, events: 0, last: "" };
  stream.request = http.get(`${ADMIN}/console/live?page=overview`, { headers: { cookie }, agent: false }, (response) => {
    stream.status = response.statusCode;
    response.setEncoding("utf8");
    let rest = "";
    response.on("data", (part) => {
      const events = (rest + part).split("\n\n");
      rest = events.pop();
      stream.events += events.length;
      stream.last = events.at(-1) ?? stream.last;
    });
    response.on("error", () => {});
  });
  stream.request.on("error", () => {});
  return stream;
}

exports.run = async (page, window) => {
  await signIn(page, "/console/help"); // a page without a stream of its own
  const cookie = (await window.context.cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
  const streams = Array.from({ length: CONSOLES }, () => listen(cookie));
  try {
    const turn = () => new Promise((resume) => { setImmediate(resume); });
    await until("every console is told twice", async () => {
      await turn();
      // The place of a page that was just left may not be free yet: a console asks again.
      streams.forEach(({ status }, at) => { if (status === 503) streams[at] = listen(cookie); });
      return streams.every(({ events }) => events > 1);
    });
    equal(streams.filter(({ status }) => status === 200).length, CONSOLES, "open streams");
    for (let time = 0; time < 20; time += 1) await check({ client_key: "user:seen-by-all", endpoint: "POST /login" });
    await until("every console shows who is limited", async () => {
      await turn();
      return streams.every(({ last }) => last.includes("user:seen-by-all"));
    });
    const extra = listen(cookie);
    await until("one more has an answer", async () => { await turn(); return extra.status !== 0; });
    equal(extra.status, 503, "one console too many");
    streams[0].request.destroy();
    await until("a free place is taken", async () => {
      const next = listen(cookie);
      await until("an answer", async () => { await turn(); return next.status !== 0; });
      if (next.status !== 200) return false;
      streams.push(next);
      return true;
    });
    has(String((await page.goto("/")).status()), "200", "pages are served beside a hundred streams");
  } finally {
    streams.forEach(({ request }) => request.destroy());
  }
};
