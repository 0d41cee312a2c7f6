//: what: an HTTP server on the loopback interface, asked with fetch, http.request and many at once
//: stdout: 200 {"path":"/items","query":"7"} | 201 6 bytes | 404 | 20 at once | kept alive true
const assert = require("assert");
const http = require("http");

const server = http.createServer(async (request, response) => {
  const url = new URL(request.url, "http://localhost");
  if (request.method === "POST") {
    let body = "";
    for await (const chunk of request) body += chunk;
    response.writeHead(201, { "Content-Type": "text/plain" }).end(`${Buffer.byteLength(body)} bytes`);
  } else if (url.pathname === "/items") {
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ path: url.pathname, query: url.searchParams.get("id") }));
  } else {
    response.writeHead(404).end();
  }
});

server.listen(0, "127.0.0.1", async () => {
  const base = `http://127.0.0.1:${server.address().port}`;
  const found = await fetch(`${base}/items?id=7`);
  assert.equal(found.headers.get("content-type"), "application/json");
  const text = await found.text();
  const made = await fetch(`${base}/items`, { method: "POST", body: "häuse" });
  const made_text = await made.text();
  const missing = await fetch(`${base}/none`);
  await missing.arrayBuffer();
  const many = await Promise.all(Array.from({ length: 20 }, (_, id) =>
    fetch(`${base}/items?id=${id}`).then((answer) => answer.json())));
  assert.deepEqual(many.map((item) => Number(item.query)), Array.from({ length: 20 }, (_, id) => id));

  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const get = () => new Promise((resolve, reject) => {
    const request = http.get(`${base}/items`, { agent }, (answer) => {
      answer.resume().on("end", () => resolve(request.reusedSocket));
    }).on("error", reject);
  });
  await get();
  const reused = await get();
  agent.destroy();
  console.log(found.status, text, "|", made.status, made_text, "|", missing.status, "|", many.length, "at once | kept alive", reused);
  server.close();
  server.closeAllConnections();
});
