// A site behind the gateway, for a browser and for curl: pages, uploads, events, WebSocket. Its page tries all of it in the
// browser, and posts what it found to /result, which is printed. Prints its port first.
const http = require("node:http");
const { WebSocketServer } = require("ws");

// Runs in the browser.
async function tryAll() {
  const found = [];
  const attempt = async (name, what) => {
    try {
      found.push({ name, ok: true, detail: String((await what()) ?? "") });
    } catch (error) {
      found.push({ name, ok: false, detail: String(error) });
    }
  };
  const equal = (one, other) => {
    if (one !== other) throw new Error(`${one} is not ${other}`);
  };
  await attempt("page", () => performance.getEntriesByType("navigation")[0].nextHopProtocol);
  await attempt("fetch of JSON", async () => equal((await (await fetch("/data")).json()).answer, 42));
  await attempt("fetch that posts 1 MiB", async () => {
    const body = "x".repeat(1 << 20);
    equal(await (await fetch("/echo", { method: "POST", body })).text(), body);
  });
  await attempt("response read as it streams", async () => {
    const reader = (await fetch("/stream")).body.getReader();
    let pieces = 0;
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      pieces += 1;
      await fetch("/next"); // the next piece is sent only when this one has arrived
    }
    equal(pieces, 3);
  });
  await attempt("50 fetches at once", async () => {
    const all = await Promise.all(Array.from({ length: 50 }, async (_, at) => (await fetch(`/data?${at}`)).status));
    equal(all.every((status) => status === 200), true);
  });
  await attempt("cookie", async () => {
    await fetch("/cookie");
    equal(await (await fetch("/cookie")).text(), "color=green");
  });
  await attempt("EventSource, which connects again where it stopped", () => new Promise((resolve, reject) => {
    const events = new EventSource("/events");
    const seen = [];
    events.onmessage = ({ data }) => {
      seen.push(data);
      if (seen.length < 6) return;
      events.close();
      seen.join() === "1,2,3,4,5,6" ? resolve() : reject(new Error(seen.join()));
    };
  }));
  await attempt("WebSocket: text, 100 KiB, close code", () => new Promise((resolve, reject) => {
    const socket = new WebSocket(`${location.protocol.replace("http", "ws")}//${location.host}/ws`);
    const wanted = ["κόσμε", new Uint8Array(100 << 10).fill(7)];
    const got = [];
    socket.binaryType = "arraybuffer";
    socket.onopen = () => wanted.forEach((message) => socket.send(message));
    socket.onmessage = ({ data }) => {
      got.push(data);
      if (got.length === 2) socket.close(4001, "enough");
    };
    socket.onclose = ({ code }) => {
      const whole = got[0] === wanted[0] && got[1].byteLength === wanted[1].length;
      whole && code === 4001 ? resolve() : reject(new Error(`${code}, ${got.length} messages`));
    };
  }));
  await attempt("429 that the page can read", async () => {
    const statuses = [];
    let refused;
    for (let call = 0; call < 3; call++) {
      refused = await fetch("/limited");
      statuses.push(refused.status);
    }
    equal(statuses.join(), "200,200,429");
    equal(refused.headers.get("content-type"), "application/problem+json");
    equal(Number(refused.headers.get("retry-after")) > 0, true);
    equal((await refused.json()).error, "rate_limited");
  });
  await fetch("/result", { method: "POST", body: JSON.stringify(found) });
}

const PAGE = `<!doctype html><title>site</title><link rel="icon" href="data:,"><script>(${tryAll})()</script>`;
let next = () => {};

const server = http.createServer((request, response) => {
  const path = request.url.split("?")[0];
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks);
    switch (path) {
      case "/":
        return response.writeHead(200, { "content-type": "text/html" }).end(PAGE);
      case "/data":
      case "/limited":
        return response.writeHead(200, { "content-type": "application/json" }).end('{"answer":42}');
      case "/echo":
        return response.end(body);
      case "/cookie":
        return response.writeHead(200, { "set-cookie": "color=green" }).end(request.headers.cookie ?? "");
      case "/next":
        response.end();
        return next();
      case "/stream": {
        let sent = 0;
        next = () => (++sent < 3 ? response.write("piece") : response.end());
        return response.write("piece");
      }
      case "/events": {
        // Three events, and the end of the connection: the browser asks for what follows the last one it has.
        const last = Number(request.headers["last-event-id"] ?? 0);
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write("retry: 10\n\n");
        for (let id = last + 1; id <= last + 3; id++) response.write(`id: ${id}\ndata: ${id}\n\n`);
        return response.end();
      }
      case "/result":
        console.log(String(body));
        return response.end();
      default:
        return response.writeHead(404).end();
    }
  });
});

const sockets = new WebSocketServer({ server, path: "/ws" });
sockets.on("connection", (socket) => {
  socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  socket.on("error", () => {}); // of a client that breaks the protocol: the library closes the connection and says why
});

server.listen(0, "127.0.0.1", () => console.log(server.address().port));
