//: what: what a program finds about its processors, memory, user, folders, network and itself
//: stdout: user user, home /home/user, cwd /home/user, linux, cpus true, memory true, only loopback true, uid 1000, pid true
//: vm: yes
const assert = require("assert");
const os = require("os");

const cpus = os.cpus();
assert.ok(os.availableParallelism() >= 1);
assert.equal(os.EOL, "\n");
assert.equal(os.tmpdir(), "/tmp");
assert.ok(os.hostname().length > 0 && os.uptime() > 0 && os.release().length > 0);
assert.equal(os.constants.signals.SIGTERM, 15);
assert.equal(os.loadavg().length, 3);

const interfaces = Object.entries(os.networkInterfaces());
const loopback = interfaces.every(([name, addresses]) => name === "lo" && addresses.every((address) => address.internal));
const memory = os.totalmem() > 0 && os.freemem() <= os.totalmem() && process.memoryUsage().rss > 0;
const { username, homedir } = os.userInfo();
assert.equal(os.homedir(), homedir);
assert.ok(process.resourceUsage().maxRSS > 0 && process.cpuUsage().user > 0);
assert.deepEqual(process.argv.length, 2);
assert.ok(process.versions.v8 && process.report.getReport().header.nodejsVersion === process.version);
console.log(`user ${username}, home ${homedir}, cwd ${process.cwd()}, ${process.platform},`,
  `cpus ${cpus.length >= 1}, memory ${memory}, only loopback ${loopback},`,
  `uid ${process.getuid()}, pid ${process.pid > 1 && process.ppid >= 0}`);
