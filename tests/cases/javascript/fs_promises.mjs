//: what: files and folders with the promises of fs: handles, recursive listing, copying, watching out for errors
//: stdout: a.txt b.txt deep/c.txt | 9 bytes | copy same | cut "hel" | ENOENT EEXIST ENOTDIR | 3 lines
//: files: kept.json
import assert from "node:assert/strict";
import { constants } from "node:fs";
import * as fs from "node:fs/promises";
import path from "node:path";

const folder = await fs.mkdtemp("/tmp/case-");
await fs.mkdir(path.join(folder, "deep"));
await Promise.all([["a.txt", "hello"], ["b.txt", "one\ntwo\nthree\n"], ["deep/c.txt", "line\n"]]
  .map(([name, text]) => fs.writeFile(path.join(folder, name), text)));
await fs.appendFile(path.join(folder, "a.txt"), " you");
const names = (await fs.readdir(folder, { recursive: true })).filter((name) => name.endsWith(".txt")).sort();
const { size } = await fs.stat(path.join(folder, "a.txt"));

await fs.copyFile(path.join(folder, "b.txt"), path.join(folder, "copy"), constants.COPYFILE_EXCL);
const same = await fs.readFile(path.join(folder, "copy"), "utf8") === await fs.readFile(path.join(folder, "b.txt"), "utf8");
const handle = await fs.open(path.join(folder, "a.txt"), "r+");
await handle.truncate(3);
const { bytesRead, buffer } = await handle.read(Buffer.alloc(10), 0, 10, 0);
await handle.close();

const code = (promise) => promise.then(() => "none", (error) => error.code);
const codes = [
  await code(fs.readFile(path.join(folder, "none"))),
  await code(fs.mkdir(folder)),
  await code(fs.readFile(path.join(folder, "a.txt", "x"))),
];
let lines = 0;
for await (const line of (await fs.open(path.join(folder, "b.txt"))).readLines()) lines += line.length > 0;
await fs.rm(folder, { recursive: true });
assert.equal(await code(fs.access(folder)), "ENOENT");
await fs.writeFile("draft.json", JSON.stringify({ names }));
await fs.rename("draft.json", "kept.json");
console.log(names.join(" "), `| ${size} bytes | copy ${same ? "same" : "differs"}`,
  `| cut "${buffer.toString("utf8", 0, bytesRead)}" | ${codes.join(" ")} | ${lines} lines`);
