// Runs the pieces of this directory one after another in one browser, and says which failed.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { launch, open } = require("./browser");

async function main() {
  const wanted = process.argv.slice(2);
  const names = fs.readdirSync(path.join(__dirname, "pages")).map((name) => name.replace(/\.js$/, "")).sort();
  const browser = await launch();
  let failed = 0;
  for (const name of names.filter((name) => wanted.length === 0 || wanted.includes(name))) {
    const piece = require(`./pages/${name}`);
    const begun = performance.now();
    const window = await open(browser, piece.options);
    let problem = null;
    try {
      await piece.run(window.page, window, browser);
    } catch (error) {
      const text = await window.page.locator("body").innerText({ timeout: 2000 }).catch(() => "");
      problem = `${error.stack}\n  at ${window.page.url()}\n${text.slice(0, 1500)}`;
    }
    problem ??= window.problems.length > 0 ? window.problems.join("\n") : null;
    await window.context.close();
    console.log(`${problem ? "FAILED" : "ok"} ${name} ${Math.round(performance.now() - begun)} ms`);
    if (problem) {
      failed += 1;
      console.log(problem);
    }
  }
  await browser.close();
  process.exitCode = failed > 0 ? 1 : 0;
}

main();
