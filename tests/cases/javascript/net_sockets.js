//: what: a line protocol over TCP and over a unix socket, several clients, and a refused connection
//: stdout: tcp: ANN,BOB,CAT; unix: LOCAL; clients 4; refused ECONNREFUSED
const assert = require("assert");
const fs = require("fs");
const net = require("net");
const { once } = require("events");

let clients = 0;
const serve = () => net.createServer((socket) => {
  clients++;
  let rest = "";
  socket.setEncoding("utf8").on("data", (chunk) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    for (const line of lines) socket.write(line.toUpperCase() + "\n");
  });
});

async function ask(where, word) {
  const socket = net.connect(where);
  await once(socket, "connect");
  socket.write(word.slice(0, 1));
  socket.end(word.slice(1) + "\n");
  let answer = "";
  for await (const chunk of socket.setEncoding("utf8")) answer += chunk;
  return answer.trim();
}

async function main() {
  const tcp = serve().listen(0, "127.0.0.1");
  const local = serve().listen("/tmp/echo.sock");
  await Promise.all([once(tcp, "listening"), once(local, "listening")]);
  assert.ok(fs.statSync("/tmp/echo.sock").isSocket());
  const where = { port: tcp.address().port, host: "127.0.0.1" };
  const answers = await Promise.all(["ann", "bob", "cat"].map((word) => ask(where, word)));
  const one = await ask({ path: "/tmp/echo.sock" }, "local");
  tcp.close();
  local.close();
  await once(tcp, "close");
  const refused = await ask(where, "x").catch((error) => error);
  console.log(`tcp: ${answers}; unix: ${one}; clients ${clients}; refused ${refused.code}`);
}

main();
