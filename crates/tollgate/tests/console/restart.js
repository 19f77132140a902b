// A page stays open while its server is restarted: its numbers move again by themselves, without a reload and a sign-in.
"use strict";

const { start, browserOf } = require("./server");

const [program, directory] = process.argv.slice(2);

async function main() {
  let running = await start(program, directory);
  const { launch, open, signIn, check, until, equal } = browserOf(running, directory);
  const browser = await launch();
  try {
    const { page } = await open(browser);
    await signIn(page);
    const heard = async () => Number(await page.locator("main").getAttribute("data-heard"));
    await until("live numbers", async () => (await heard()) > 1);
    await page.evaluate(() => { globalThis.isSamePage = true; });

    await running.end();
    const before = await heard();
    running = await start(program, directory, running);
    for (let turn = 0; turn < 20; turn += 1) await check({ client_key: "user:after-restart", endpoint: "POST /login" });
    await page.getByRole("region", { name: "Limited clients" }).getByText("user:after-restart").waitFor();
    if ((await heard()) <= before) throw new Error("the page was not told");
    equal(await page.evaluate(() => globalThis.isSamePage), true, "the page was not loaded again");
    console.log("ok restart");
  } finally {
    await browser.close();
    running.server.kill("SIGKILL");
  }
}

main().catch((error) => { console.log(`FAILED restart\n${error.stack}`); process.exitCode = 1; });
