//: what: cancelling with AbortController: listeners, reasons, time-outs, combined signals, fetch and a child process
//: stdout: once 1, reason enough, TimeoutError, any second, fetch AbortError, child AbortError SIGTERM, already true
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { on, once } from "node:events";
import http from "node:http";

const first = new AbortController();
let calls = 0;
first.signal.addEventListener("abort", () => calls++, { once: true });
first.abort(new Error("enough"));
first.abort(new Error("too late"));
assert.throws(() => first.signal.throwIfAborted(), { message: "enough" });

const limit = AbortSignal.timeout(10);
const keep = setTimeout(() => {}, 1000);
await once(limit, "abort");
clearTimeout(keep);

const [a, b] = [new AbortController(), new AbortController()];
const any = AbortSignal.any([a.signal, b.signal]);
b.abort("second");

const server = http.createServer(() => {}).listen(0, "127.0.0.1");
await once(server, "listening");
const stop = new AbortController();
server.once("request", () => stop.abort());
const failed = await fetch(`http://127.0.0.1:${server.address().port}/`, { signal: stop.signal }).catch((error) => error);
server.closeAllConnections();
server.close();

const kill = new AbortController();
const child = spawn("sleep", ["30"], { signal: kill.signal });
const error = once(child, "error").catch((error) => [error]);
const exit = new Promise((resolve) => child.on("exit", (code, signal) => resolve(signal)));
child.once("spawn", () => kill.abort());
const [[why], signal] = await Promise.all([error, exit]);
await assert.rejects(async () => { for await (const _ of on(server, "none", { signal: AbortSignal.abort() })); }, { name: "AbortError" });
console.log(`once ${calls}, reason ${first.signal.reason.message}, ${limit.reason.name}, any ${any.reason}, fetch ${failed.name},`,
  `child ${why.name} ${signal}, already ${AbortSignal.abort().aborted}`);
