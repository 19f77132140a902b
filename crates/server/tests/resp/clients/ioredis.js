// ioredis with its default settings: PORT is the argument.
const assert = require("node:assert");
const Redis = require("ioredis");

async function main() {
  const client = new Redis({ port: Number(process.argv[2]), host: "127.0.0.1" });
  await new Promise((resolve, reject) => client.once("ready", resolve).once("error", reject));
  assert.strictEqual(await client.ping(), "PONG");
  assert.deepStrictEqual(await client.call("CL.THROTTLE", "io", 1, 1, 3600), [0, 2, 1, -1, 3600]);
  const replies = await Promise.all(Array.from({ length: 50 }, () => client.call("CL.THROTTLE", "io", 1, 1, 3600)));
  assert.strictEqual(replies.filter((reply) => reply[0] === 0).length, 1);
  const piped = await client.pipeline().call("CL.THROTTLE", "io", 1, 1, 3600).call("PING").exec();
  assert.deepStrictEqual(piped.map(([error]) => error), [null, null]);
  const throttle = ["CL.THROTTLE", "iot", 1, 1, 3600];
  const many = await client.multi().call(...throttle).call(...throttle).call(...throttle).ping().exec();
  assert.deepStrictEqual(many.map(([error, reply]) => (error ? error.message : reply[0])), [0, 0, 1, "P"]);
  await assert.rejects(client.multi().call("CL.THROTTLE", "iou", 1, 1, 3600).call("NOSUCH").exec(), /EXECABORT/);
  assert.strictEqual((await client.call("CL.THROTTLE", "iou", 1, 1, 3600))[2], 1, "charged by what was refused");
  await client.multi({ pipeline: false });
  assert.strictEqual(await client.ping(), "QUEUED");
  assert.strictEqual(await client.discard(), "OK");
  await assert.rejects(client.call("CL.THROTTLE", "io", -1, 1, 1), /Negative values/);
  assert.strictEqual(await client.del("io"), 1);
  await client.quit();
  console.log("ok");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
