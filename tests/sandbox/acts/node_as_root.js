//: act: change user, group and limits through the interfaces of node
const fs = require('fs');

const acts = {
  setuid: () => process.setuid(0),
  setgid: () => process.setgid(0),
  seteuid: () => process.seteuid('root'),
  setgroups: () => process.setgroups([0]),
  initgroups: () => process.initgroups('root', 0),
  priority: () => require('os').setPriority(-20),
  chown: () => fs.chownSync('/home/user', 0, 0),
  device: () => require('child_process').execFileSync('mknod', ['/tmp/node', 'c', '1', '1'], { stdio: 'pipe' }),
  memory: () => fs.openSync('/proc/1/mem', 'r'),
  binary: () => fs.openSync(process.execPath, 'r+'),
};
for (const [name, act] of Object.entries(acts)) {
  try {
    act();
    console.log(`ESCAPED: ${name}`);
    process.exit(66);
  } catch (error) {
    console.log(`contained: ${error.code ?? `status ${error.status}`} ${name}`);
  }
}
