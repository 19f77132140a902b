// `ws`, a client that checks every frame, through the gateway: PORT is the argument. Each byte is unmasked, reassembled
// and checked for UTF-8 by the client, and by the server behind.
const assert = require("node:assert");
const net = require("node:net");
const crypto = require("node:crypto");
const WebSocket = require("ws");

const port = Number(process.argv[2]);
const open = (options) =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`, options);
    socket.once("open", () => resolve(socket)).once("error", reject);
  });
const next = (socket) => new Promise((resolve) => socket.once("message", (data, binary) => resolve([data, binary])));
const closed = (socket) => new Promise((resolve) => socket.once("close", (code, reason) => resolve([code, String(reason)])));

async function echo(socket, data) {
  const answer = next(socket);
  socket.send(data);
  const [echoed, binary] = await answer;
  assert.strictEqual(binary, typeof data !== "string");
  assert.ok(Buffer.from(data).equals(echoed), "what comes back is what was sent");
}

async function messages(options) {
  const socket = await open(options);
  for (const length of [0, 1, 125, 126, 65535, 65536, 1 << 20]) await echo(socket, crypto.randomBytes(length));
  await echo(socket, "κόσμε");
  for (let count = 0; count < 200; count++) await echo(socket, `message ${count}`);
  const pong = new Promise((resolve) => socket.once("pong", (data) => resolve(String(data))));
  socket.ping("are you there");
  assert.strictEqual(await pong, "are you there");
  const end = closed(socket);
  socket.close(4001, "enough");
  assert.deepStrictEqual(await end, [4001, "enough"], "the server's half of the closing handshake");
}

async function fragments() {
  const socket = await open({ perMessageDeflate: false });
  const answer = next(socket);
  for (let part = 0; part < 10; part++) {
    socket.send(`part ${part};`, { fin: part === 9 });
    if (part === 4) socket.ping(); // control frames may stand between fragments
  }
  assert.strictEqual(String((await answer)[0]).split(";").length, 11);
  socket.terminate();
}

// A frame of a client, by hand.
function frame(first, payload, mask = true) {
  const bytes = Buffer.from(payload);
  const key = mask ? crypto.randomBytes(4) : Buffer.alloc(0);
  const head = Buffer.from([first, (mask ? 0x80 : 0) | bytes.length]);
  return Buffer.concat([head, key, mask ? bytes.map((byte, at) => byte ^ key[at % 4]) : bytes]);
}

// What the server does about a broken frame passes, too: its close frame has this code.
async function broken(bytes, code, pieces = false) {
  const socket = net.connect(port, "127.0.0.1");
  const received = [];
  socket.on("data", (data) => received.push(data));
  const over = new Promise((resolve) => socket.once("close", resolve));
  socket.write(
    "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
      `Sec-WebSocket-Key: ${crypto.randomBytes(16).toString("base64")}\r\n\r\n`,
  );
  const has = async (wanted) => {
    while (!Buffer.concat(received).includes(wanted)) await new Promise((resolve) => socket.once("data", resolve));
  };
  await has("\r\n\r\n");
  assert.match(Buffer.concat(received).toString("latin1"), /^HTTP\/1\.1 101 /);
  if (pieces) for (const byte of bytes) socket.write(Buffer.from([byte]));
  else socket.write(bytes);
  await has(Buffer.from([0x88, 0x02, code >> 8, code & 0xff]));
  socket.end(); // the caller's half ends first: what the server still sends arrives
  await over;
}

async function main() {
  await messages({ perMessageDeflate: false });
  await messages({ perMessageDeflate: true });
  await fragments();
  await Promise.all(Array.from({ length: 20 }, () => messages({ perMessageDeflate: false })));
  await broken(frame(0x81, "no mask", false), 1002);
  await broken(frame(0x83, "unknown opcode"), 1002);
  await broken(frame(0xc1, "reserved bit"), 1002);
  await broken(frame(0x81, [0xff, 0xfe]), 1007);
  await broken(frame(0x88, [0x03, 0xe8]), 1000, true);
  console.log("ok");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
