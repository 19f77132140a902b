// node-redis with its default settings: PORT is the argument.
const assert = require("node:assert");
const { createClient } = require("redis");

async function main() {
  const client = createClient({ url: `redis://127.0.0.1:${process.argv[2]}` });
  client.on("error", (error) => {
    console.error(error);
    process.exit(1);
  });
  await client.connect();
  assert.strictEqual(await client.ping(), "PONG");
  const throttle = ["CL.THROTTLE", "nr", "1", "1", "3600"];
  assert.deepStrictEqual(await client.sendCommand(throttle), [0, 2, 1, -1, 3600]);
  const replies = await Promise.all(Array.from({ length: 50 }, () => client.sendCommand(throttle)));
  assert.strictEqual(replies.filter((reply) => reply[0] === 0).length, 1);
  const decision = await client.sendCommand(["TG.CHECK", "client_key=nr"]);
  assert.ok(decision, "a decision");
  const own = ["CL.THROTTLE", "nrt", "1", "1", "3600"];
  const many = await client.multi().addCommand(own).addCommand(own).addCommand(own).ping().exec();
  assert.deepStrictEqual(many.map((reply) => reply[0]), [0, 0, 1, "P"]);
  await assert.rejects(client.multi().addCommand(["CL.THROTTLE", "nru", "1", "1", "3600"]).addCommand(["NOSUCH"]).exec());
  const after = await client.sendCommand(["CL.THROTTLE", "nru", "1", "1", "3600"]);
  assert.strictEqual(after[2], 1, "charged by what was refused");
  await assert.rejects(client.sendCommand(["CL.THROTTLE", "nr", "0", "0", "60"]), /Zero rates/);
  assert.strictEqual(await client.del("nr"), 1);
  await client.close();
  console.log("ok");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
