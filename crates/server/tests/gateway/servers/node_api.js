// An API as many write it: Express with its defaults (paths in any case, a last slash or none), and WebSocket by `ws`.
// Prints its port. What it has received is asked for at /seen, directly.
const express = require("express");
const http = require("node:http");
const { WebSocketServer } = require("ws");

let seen = [];
const app = express();
app.get("/api/orders/:id", (request, response) => response.send(`order ${request.params.id}`));
app.post("/login", (request, response) => response.send("logged in"));
app.use((request, response) => response.send("from node"));

const server = http.createServer((request, response) => {
  if (request.url === "/seen") {
    response.end(JSON.stringify(seen));
    seen = [];
    return;
  }
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const fields = [];
    for (let at = 0; at < request.rawHeaders.length; at += 2) {
      fields.push(`${request.rawHeaders[at].toLowerCase()}: ${request.rawHeaders[at + 1]}`);
    }
    seen.push(
      [`${request.method} ${request.url} HTTP/${request.httpVersion}`, ...fields, "", Buffer.concat(chunks).toString("latin1")].join("\r\n"),
    );
    app(request, response);
  });
});
// A connection that ends within a request is no request, here as with nginx and hyper: the gateway began to forward a body
// of which only a later part is malformed.
const BROKEN_OFF = ["ECONNRESET", "HPE_INVALID_EOF_STATE"];
server.on("clientError", (error, socket) => {
  if (!BROKEN_OFF.includes(error.code)) seen.push(`client error ${error.code}`);
  socket.destroy();
});

const sockets = new WebSocketServer({ server, path: "/ws", maxPayload: 4 << 20 });
sockets.on("connection", (socket) => {
  socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  socket.on("error", (error) => seen.push(`socket error ${error.code}`));
  socket.on("close", (code) => seen.push(`socket closed ${code}`));
});

server.listen(0, "127.0.0.1", () => console.log(server.address().port));
