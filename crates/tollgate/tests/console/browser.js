// A Chromium on the console, as a person has it: everything unexpected that a page does is an error.
"use strict";

const { chromium } = require("playwright-core");

const { ADMIN, DATA, TOKEN, CHROMIUM } = process.env;
const PATIENCE = 30_000; // of a busy machine

/** Starts the browser: nothing of it may reach for the network. */
function launch() {
  const args = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
  ];
  return chromium.launch({ executablePath: CHROMIUM, args, timeout: PATIENCE });
}

/** A window of its own, with its own cookies. `problems` fills with what no page may do. */
async function open(browser, options = {}) {
  const context = await browser.newContext({ baseURL: ADMIN, ...options });
  context.setDefaultTimeout(PATIENCE);
  const problems = [];
  const page = await context.newPage();
  page.on("console", (message) => {
    // A refused form answers with its status, which Chromium reports as an error of the page.
    if (message.type() === "error" && !/status of (4\d\d|503)/.test(message.text())) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => { problems.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => {
    if (!request.url().startsWith(ADMIN)) problems.push(`request to ${request.url()}`);
  });
  return { context, page, problems };
}

/** Signs in and waits for the page that was asked for. */
async function signIn(page, path = "/", token = TOKEN) {
  await page.goto(path);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

/** Calls the admin API with a token, beside the browser. */
async function api(method, path, body, token = TOKEN) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", "if-match": "*" };
  if (method === "GET" || method === "POST") delete headers["if-match"];
  const response = await fetch(ADMIN + path, { method, headers, body: body && JSON.stringify(body) });
  return { status: response.status, json: await response.json().catch(() => null) };
}

/** Asks whether a request may pass. */
async function check(request) {
  const response = await fetch(`${DATA}/v1/check`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(request) });
  return response.json();
}

/** Waits until something is so: each attempt is an answered request, so that no clock is needed. */
async function until(what, holds) {
  const end = performance.now() + PATIENCE;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`waited in vain: ${what}`);
  }
}

function equal(actual, expected, what) {
  if (actual !== expected) throw new Error(`${what}: ${JSON.stringify(actual)} is not ${JSON.stringify(expected)}`);
}

function has(text, part, what) {
  if (!text.includes(part)) throw new Error(`${what}: ${JSON.stringify(part)} is not in ${JSON.stringify(text.slice(0, 600))}`);
}

module.exports = { ADMIN, DATA, TOKEN, PATIENCE, launch, open, signIn, api, check, until, equal, has };
