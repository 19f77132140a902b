// A server that a script starts, ends and starts again, on addresses that stay.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { spawn } = require("node:child_process");
const { createInterface } = require("node:readline");

/** Starts `tollgate serve` in a directory that has examples/; resolves once it listens. `known` has the addresses of an earlier start. */
function start(program, directory, known = {}) {
  const address = (name) => known[name]?.replace("http://", "") ?? "127.0.0.1:0";
  const args = ["serve", "--rules", "examples/fleet.yaml", "--admin", address("admin"), "--http", address("data"), "--state-dir", "state", "--violations-plain-keys"];
  const server = spawn(program, args, { cwd: directory, stdio: ["ignore", "pipe", "ignore"] });
  const ended = new Promise((resolve) => { server.on("exit", resolve); });
  const found = {};
  return new Promise((resolve, reject) => {
    createInterface({ input: server.stdout }).on("line", (line) => {
      const [, name, url] = line.match(/^(admin on|listening on) (http:[^, ]*)/) ?? [];
      if (name) found[name] = url;
      if (!line.startsWith("try: ")) return;
      const end = async () => { server.kill("SIGTERM"); await ended; };
      resolve({ server, end, pid: server.pid, admin: found["admin on"], data: found["listening on"] });
    });
    ended.then(() => reject(new Error("the server ended before it listened")));
  });
}

/** The helpers of the browser, which read where the server is when they are loaded. */
function browserOf(running, directory) {
  process.env.ADMIN = running.admin;
  process.env.DATA = running.data;
  process.env.TOKEN = fs.readFileSync(path.join(directory, "state/admin-token"), "utf8").trim();
  return require("./browser");
}

module.exports = { start, browserOf };
