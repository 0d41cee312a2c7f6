//: what: process.exit(0) with a timer, a server and a promise still pending, after exit handlers have run
//: stdout: before | exit 0 once
const assert = require("assert");
const http = require("http");

let exits = 0;
process.on("beforeExit", () => assert.fail("the event loop never runs empty"));
process.on("exit", (code) => {
  exits++;
  process.stdout.write(`| exit ${code} once\n`);
});
process.on("exit", () => assert.equal(exits, 1));
setInterval(() => {}, 1000);
new Promise(() => {}).then(() => assert.fail("it was never settled"));
http.createServer().listen(0, "127.0.0.1", () => {
  process.stdout.write("before ");
  process.exitCode = 7;
  process.exit(0);
});
