//: act: read the host through node: files, environment, reports, other processes, core modules
//: options: --env HOST_FILE={file} --env HOST_PID={pid}
const fs = require('fs');
const { execSync } = require('child_process');

const found = [];
for (const path of ['/etc/shadow', '/root', '/proc/1/environ', '/proc/1/root', '/etc/machine-id', '/run/docker.sock', '/sys', process.env.HOST_FILE,
  `/proc/${process.env.HOST_PID}/environ`]) {
  try {
    fs.statSync(path).isDirectory() ? found.push([path, fs.readdirSync(path)]) : found.push([path, fs.readFileSync(path, 'latin1').length]);
  } catch {
    // Not there or not readable.
  }
}
const report = process.report.getReport();
const text = JSON.stringify(report.environmentVariables) + JSON.stringify(process.env);
if (/canary/.test(text))
  found.push(['the environment', 'a secret']);
const { uid } = require('os').userInfo();
for (const command of ['id -u', 'whoami']) {
  const answer = execSync(command, { encoding: 'utf8' }).trim();
  if (![String(uid), 'user'].includes(answer))
    found.push([command, answer]);
}
try {
  process.kill(Number(process.env.HOST_PID), 0);
  found.push(['a process of the host', process.env.HOST_PID]);
} catch (error) {
  if (error.code !== 'ESRCH')
    found.push(['signals', error.code]);
}
if (found.length) {
  console.log('ESCAPED:', found);
  process.exit(66);
}
console.log('contained: found nothing');
