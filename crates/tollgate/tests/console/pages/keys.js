// Keys: search as you type, help, the places; the pointer on a chart.
"use strict";

const { signIn, has, until } = require("../browser");

exports.run = async (page) => {
  await signIn(page);
  await page.keyboard.press("/");
  await page.keyboard.type("login");
  const found = page.locator("#found");
  await found.getByRole("link", { name: "logins" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "logins" }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Help" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.locator(".plot svg").hover();
  await until("the pointer tells the values", async () => (await page.locator(".tip").count()) > 0);
  has(await page.locator(".tip").innerText(), "allowed", "the values under the pointer");

  // The stream ends with nothing lost: it is heard of again after the page was hidden.
  await until("live numbers", async () => Number(await page.locator("main").getAttribute("data-heard")) > 1);
};
