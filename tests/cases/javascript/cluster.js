//: what: a cluster of two processes that share one listening socket
//: stdout: 6 answers from 2 workers, all ended with 0
const cluster = require('cluster');
const http = require('http');
const { once } = require('events');

if (cluster.isPrimary) {
  main();
} else {
  const server = http.createServer((_request, response) => response.end(String(process.pid)));
  server.listen(0, '127.0.0.1');
  process.on('message', () => { server.close(); process.disconnect(); });
}

function get(port) {
  return new Promise((resolve, reject) => {
    http.get({ port, host: '127.0.0.1', agent: false }, async (response) => {
      let text = '';
      for await (const chunk of response)
        text += chunk;
      resolve(text);
    }).on('error', reject);
  });
}

async function main() {
  const workers = [cluster.fork(), cluster.fork()];
  const listening = await Promise.all(workers.map((worker) => once(worker, 'listening')));
  const port = listening[0][0].port;
  const pids = new Set();
  for (let n = 0; n < 6; n++)
    pids.add(await get(port));
  const exits = workers.map((worker) => once(worker, 'exit'));
  workers.forEach((worker) => worker.send('end'));
  const codes = (await Promise.all(exits)).map(([code]) => code);
  console.log(`6 answers from ${pids.size} workers, all ended with ${[...new Set(codes)]}`);
}
