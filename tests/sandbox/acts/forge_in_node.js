//: act: write frames to every descriptor of the process, close them, and then fail
//: status: failed
//: exit: 4
const fs = require('fs');

function frame(kind, text = '') {
  const header = Buffer.alloc(12);
  header.write('CSN1');
  header[4] = kind;
  header.writeUInt32LE(text.length, 8);
  return Buffer.concat([header, Buffer.from(text)]);
}

for (const name of fs.readdirSync('/proc/self/fd')) {
  const descriptor = Number(name);
  if (descriptor <= 2)
    continue;
  for (const message of [frame(5, '{"type":"number","value":1}'), frame(6)]) {
    try {
      // Epoll and event descriptors of node's own take no such bytes, and must not be made to block.
      if (fs.fstatSync(descriptor).isSocket())
        fs.writeSync(descriptor, message);
    } catch {
      break;
    }
  }
}
process.exit(4);
