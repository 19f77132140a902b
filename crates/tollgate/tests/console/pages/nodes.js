// The nodes of a fleet: each with its store, mode and rules; one that is ended leaves the list without a reload.
"use strict";

const { signIn, until, has, equal } = require("../browser");

exports.run = async (page) => {
  await signIn(page);
  await page.getByRole("region", { name: "System" }).getByRole("link").click();
  await page.getByRole("heading", { name: "Nodes", level: 1 }).waitFor();
  const table = page.getByRole("region", { name: "Nodes" });
  await table.getByRole("row").filter({ hasText: "second" }).waitFor();
  const own = table.getByRole("row").filter({ hasText: "this" });
  for (const part of ["first", "up", "127.0.0.1", "enforce", "now"]) has(await own.innerText(), part, "this node");
  const other = table.getByRole("row").filter({ hasText: "second" });
  await until("the other node's rules are compared", async () => (await other.innerText()).includes("other rules"));
  await page.getByText("Decides by other rules than this node: second.").waitFor();
  has(await own.locator("time").getAttribute("title"), "UTC", "since when it runs");

  process.kill(Number(process.env.SECOND), "SIGTERM");
  await until("the list is without the node that ended", async () => (await other.count()) === 0);
  equal(await page.locator(".note.bad").count(), 0, "alarms about a node that ended in good order");

  await page.goto("/console/system");
  await page.getByRole("region", { name: "Nodes" }).getByRole("link", { name: "All nodes" }).click();
  await page.getByRole("heading", { name: "Nodes", level: 1 }).waitFor();
};
