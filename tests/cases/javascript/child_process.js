//: what: child processes by exec, execFile, spawn, fork and their synchronous kin, with input, status, signal and time-out
//: stdout: exec 5, upper HELLO, status 3, signal SIGTERM, timed out true, fork 42, sync user, env yes
const assert = require("assert");
const fs = require("fs");
const { exec, execFile, execFileSync, fork, spawn, spawnSync } = require("child_process");
const { once } = require("events");
const { promisify } = require("util");

async function main() {
  const counted = await promisify(exec)("printf 'a\\nb\\nc\\nd\\ne\\n' | wc -l");
  assert.equal(counted.stderr, "");

  const tr = spawn("tr", ["a-z", "A-Z"]);
  let upper = "";
  tr.stdout.on("data", (chunk) => (upper += chunk));
  tr.stdin.end("hello");
  await once(tr, "close");

  const [status] = await once(spawn("sh", ["-c", "exit 3"]), "exit");
  const sleeper = spawn("sleep", ["30"]);
  const ended = once(sleeper, "exit");
  sleeper.kill();
  const [, signal] = await ended;
  const late = await promisify(execFile)("sleep", ["30"], { timeout: 50 }).catch((error) => error);

  fs.writeFileSync("/tmp/child.js", "process.once('message', (n) => { process.send(n * 2); process.disconnect(); });");
  const child = fork("/tmp/child.js");
  child.send(21);
  const [answer] = await once(child, "message");
  const [code] = await once(child, "exit");
  assert.equal(code, 0);

  const user = execFileSync("id", ["-un"], { encoding: "utf8" }).trim();
  const env = spawnSync("sh", ["-c", "echo $FLAG"], { env: { ...process.env, FLAG: "yes" }, encoding: "utf8" });
  console.log(`exec ${counted.stdout.trim()}, upper ${upper}, status ${status}, signal ${signal},`,
    `timed out ${late.killed}, fork ${answer}, sync ${user}, env ${env.stdout.trim()}`);
}

main();
