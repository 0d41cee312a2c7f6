//: what: an HTTP server on the loopback interface, asked by http and by fetch, with streams and errors
//: stdout: 200 hello GET, 201 11 bytes, 404, streamed 5 parts, refused ECONNREFUSED
const assert = require('assert');
const http = require('http');
const { once } = require('events');
const { setTimeout: sleep } = require('timers/promises');

async function serve(request, response) {
  if (request.method === 'POST') {
    let length = 0;
    for await (const chunk of request)
      length += chunk.length;
    response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ length }));
  } else if (request.url === '/hello') {
    response.end(`hello ${request.method}`);
  } else if (request.url === '/stream') {
    for (let n = 0; n < 5; n++) {
      response.write(`part ${n}\n`);
      await sleep(2);
    }
    response.end();
  } else {
    response.writeHead(404).end();
  }
}

async function main() {
  const server = http.createServer(serve).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const base = `http://localhost:${server.address().port}`;

  const hello = await fetch(`${base}/hello`);
  const posted = await fetch(base, { method: 'POST', body: 'hello world' });
  const { length } = await posted.json();
  const missing = await fetch(`${base}/missing`);
  const streamed = (await (await fetch(`${base}/stream`)).text()).trim().split('\n');
  const [response] = await once(http.get(`${base}/hello`), 'response');
  response.resume();
  assert.strictEqual(response.headers['transfer-encoding'] ?? 'none', 'none');

  const text = await hello.text();
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  const [refused] = await once(http.get(base, { agent: false }), 'error').catch((error) => [error]);
  console.log(`${hello.status} ${text}, ${posted.status} ${length} bytes, ${missing.status},`,
    `streamed ${streamed.length} parts, refused ${refused.code}`);
}

main();
