// Webhooks: made with a secret that is shown once, tested against a real receiver, with its delivery log, and deleted.
"use strict";

const http = require("node:http");
const { signIn, has, equal } = require("../browser");

/** A receiver that answers each message with the next of these statuses. */
function receiver(statuses) {
  const messages = [];
  const server = http.createServer((request, response) => {
    let body = "";
    request.on("data", (part) => { body += part; });
    request.on("end", () => {
      messages.push({ headers: request.headers, body });
      response.writeHead(statuses.shift() ?? 204).end();
    });
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve({ server, messages, url: `http://127.0.0.1:${server.address().port}/hook` })));
}

exports.run = async (page) => {
  const { server, messages, url } = await receiver([204, 500]);
  try {
    await signIn(page, "/console/system");
    await page.getByText("New webhook…").click();
    const form = page.locator("details[open] form");
    await form.getByLabel("URL").fill(url);
    await form.getByLabel("Name").fill("on call");
    await form.getByRole("button", { name: "Make the webhook" }).click();
    const secret = (await page.locator(".note pre code").innerText()).trim();
    has(secret, "whsec_", "the secret");
    await page.reload();
    equal(await page.locator(".note pre").count(), 0, "a secret is shown once");

    const card = page.locator(".card").filter({ hasText: url });
    has(await card.innerText(), "on call", "the name");
    has(await card.innerText(), "all events", "the events");
    await test(page, card);
    const delivered = card.getByRole("row").filter({ hasText: "delivered" });
    has(await delivered.innerText(), "204", "the status in the delivery log");
    equal(messages.length, 1, "messages that arrived");
    equal(JSON.parse(messages[0].body).event, "test", "the event");
    has(messages[0].headers["webhook-signature"], "v1,", "the signature");

    // A receiver that fails: what it answered, and that it is tried again.
    await test(page, card);
    const failed = card.getByRole("row").filter({ hasText: "500" });
    has(await failed.innerText(), "waiting", "the state after a failure");
    has(await failed.innerText(), "1 attempt", "the attempts");

    await card.getByText("Delete…").click();
    await card.getByRole("button", { name: "Delete the webhook" }).click();
    await page.getByText("The webhook is deleted.").waitFor();
    equal(await card.count(), 0, "cards of the deleted webhook");

    // What the server would not call is refused in words, and the operator is not sent away.
    await page.getByText("New webhook…").click();
    await page.locator("details[open] form").getByLabel("URL").fill("ftp://example.com/");
    await page.getByRole("button", { name: "Make the webhook" }).click();
    await page.locator(".note.bad").waitFor();
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
  } finally {
    server.close();
  }
};

async function test(page, card) {
  await card.getByText("Test…").click();
  await card.getByRole("button", { name: "Send the test" }).click();
  await page.getByText("A test event was sent").waitFor();
}
