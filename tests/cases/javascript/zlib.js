//: what: gzip, deflate and brotli, at once, by stream, into a file that gzip reads, and a damaged text
//: stdout: gzip true deflate true brotli true stream 300000 command true damaged Z_DATA_ERROR
const assert = require("assert");
const fs = require("fs");
const zlib = require("zlib");
const { execFileSync } = require("child_process");
const { Readable } = require("stream");
const { pipeline } = require("stream/promises");

const text = Buffer.from("a line of text that repeats\n".repeat(2000));
const works = (pack, unpack) => {
  const packed = pack(text);
  assert.ok(packed.length < text.length / 20);
  return unpack(packed).equals(text);
};

async function main() {
  const gzip = works(zlib.gzipSync, zlib.gunzipSync);
  const deflate = works(zlib.deflateRawSync, zlib.inflateRawSync);
  const brotli = works(zlib.brotliCompressSync, zlib.brotliDecompressSync);

  const chunks = Array.from({ length: 300 }, (_, n) => Buffer.alloc(1000, n));
  await pipeline(Readable.from(chunks), zlib.createGzip({ level: 9 }), fs.createWriteStream("/tmp/chunks.gz"));
  let size = 0;
  for await (const chunk of fs.createReadStream("/tmp/chunks.gz").pipe(zlib.createGunzip())) size += chunk.length;
  const command = execFileSync("gzip", ["-dc", "/tmp/chunks.gz"]).equals(Buffer.concat(chunks));

  const damaged = zlib.gzipSync(text);
  damaged.fill(255, 20, 40);
  const error = await new Promise((resolve) => zlib.gunzip(damaged, (error) => resolve(error)));
  console.log("gzip", gzip, "deflate", deflate, "brotli", brotli, "stream", size, "command", command, "damaged", error.code);
}

main();
