/** `conformance app FRAMEWORK` and `conformance client`: what sdk/conformance/README.md describes. */
import { serve } from "./app.js";
import { answerLines } from "./client.js";

const [command, framework] = process.argv.slice(2);
if (command === "app" && framework !== undefined) {
  console.log(`ready ${await serve(framework)}`);
  process.stdin.resume().on("end", () => process.exit(0));
} else if (command === "client") {
  await answerLines();
  process.exit(0); // slots that are still held would keep it alive
} else {
  console.error("usage: conformance app express|fastify|fetch|hono|nest|next, or conformance client");
  process.exit(2);
}
