//: what: synchronous file calls: modes, links, times, descriptors, positions, temporary folders and removal
//: stdout: mode 640 link target.txt hard 2 time 2001-02-03 part cde appended abcdefgh! left 0
//: vm: yes
const assert = require("assert");
const fs = require("fs");
const os = require("os");
const path = require("path");

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "case-"));
process.chdir(folder);
fs.writeFileSync("target.txt", "abcdefgh", { mode: 0o600 });
fs.chmodSync("target.txt", 0o640);
fs.symlinkSync("target.txt", "link");
fs.linkSync("target.txt", "hard");
const when = new Date("2001-02-03T04:05:06Z");
fs.utimesSync("target.txt", when, when);
const facts = fs.statSync("target.txt");
assert.ok(fs.lstatSync("link").isSymbolicLink());
assert.equal(fs.realpathSync("link"), path.join(folder, "target.txt"));

const descriptor = fs.openSync("hard", "a+");
const part = Buffer.alloc(3);
fs.readSync(descriptor, part, 0, 3, 2);
fs.writeSync(descriptor, "!");
fs.fsyncSync(descriptor);
fs.closeSync(descriptor);
assert.throws(() => fs.readSync(descriptor, part), { code: "EBADF" });

const appended = fs.readFileSync("link", "utf8");
fs.mkdirSync("a/b/c", { recursive: true });
fs.cpSync("target.txt", "a/b/c/copy.txt");
assert.throws(() => fs.rmdirSync("a"), { code: "ENOTEMPTY" });
process.chdir("/");
fs.rmSync(folder, { recursive: true });
const left = fs.readdirSync(os.tmpdir()).filter((name) => name.startsWith("case-")).length;
console.log("mode", (facts.mode & 0o777).toString(8), "link", "target.txt", "hard", facts.nlink,
  "time", facts.mtime.toISOString().slice(0, 10), "part", part.toString(), "appended", appended, "left", left);
