//: what: TCP, UDP and unix sockets between parts of one program
//: stdout: tcp ECHO half closed, unix ok, udp 3 datagrams, lookup 127.0.0.1, closed port ECONNREFUSED
const dgram = require('dgram');
const dns = require('dns/promises');
const fs = require('fs');
const net = require('net');
const { once } = require('events');

async function ask(address, text) {
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    let received = '';
    socket.setEncoding('utf8').on('data', (chunk) => { received += chunk; });
    socket.on('end', () => socket.end(received.toUpperCase()));
  }).listen(address);
  await once(server, 'listening');
  const client = net.connect(typeof address === 'string' ? address : server.address().port);
  client.end(text);
  let answer = '';
  for await (const chunk of client.setEncoding('utf8'))
    answer += chunk;
  server.close();
  return answer;
}

async function datagrams() {
  const receiver = dgram.createSocket('udp4'), sender = dgram.createSocket('udp4');
  receiver.bind(0, '127.0.0.1');
  await once(receiver, 'listening');
  const seen = [];
  const all = new Promise((done) => receiver.on('message', (text) => { if (seen.push(String(text)) === 3) done(); }));
  for (const text of ['a', 'b', 'c'])
    sender.send(text, receiver.address().port, '127.0.0.1');
  await all;
  receiver.close();
  sender.close();
  return seen.length;
}

async function main() {
  const tcp = await ask({ port: 0, host: '127.0.0.1' }, 'echo');
  const unix = await ask('/tmp/socket', 'ok');
  const count = await datagrams();
  const { address } = await dns.lookup('localhost', { family: 4 });
  const [refused] = await once(net.connect(1, '127.0.0.1'), 'error').catch((error) => [error]);
  const gone = !fs.existsSync('/tmp/socket');
  console.log(`tcp ${tcp} half closed, unix ${gone ? unix.toLowerCase() : 'left behind'}, udp ${count} datagrams,`,
    `lookup ${address}, closed port ${refused.code}`);
}

main();
