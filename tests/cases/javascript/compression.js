//: what: gzip, deflate and brotli, at once and as streams, and damaged data that is refused
//: stdout: gzip true, deflate true, brotli true, streamed true, damaged Z_DATA_ERROR, gzip agrees
const fs = require('fs');
const zlib = require('zlib');
const { execFileSync } = require('child_process');
const { pipeline } = require('stream/promises');
const { promisify } = require('util');

const text = 'a line that comes again\n'.repeat(1000);

async function main() {
  const gzipped = await promisify(zlib.gzip)(text);
  const gzip = zlib.gunzipSync(gzipped).toString() === text && gzipped.length < 500;
  const deflate = zlib.inflateRawSync(zlib.deflateRawSync(text)).toString() === text;
  const brotli = zlib.brotliDecompressSync(zlib.brotliCompressSync(text)).toString() === text;

  fs.writeFileSync('/tmp/text', text);
  await pipeline(fs.createReadStream('/tmp/text'), zlib.createGzip({ level: 9 }), fs.createWriteStream('/tmp/text.gz'));
  let unpacked = '';
  for await (const chunk of fs.createReadStream('/tmp/text.gz').pipe(zlib.createGunzip()))
    unpacked += chunk;

  const broken = Buffer.from(gzipped);
  broken[15] ^= 0xff;
  const damaged = await promisify(zlib.gunzip)(broken).catch((error) => error.code);
  // Another program reads what this one packed.
  const agrees = execFileSync('gzip', ['-dc', '/tmp/text.gz'], { encoding: 'utf8' }) === text;
  console.log(`gzip ${gzip}, deflate ${deflate}, brotli ${brotli}, streamed ${unpacked === text},`,
    `damaged ${damaged}, ${agrees ? 'gzip agrees' : 'differs'}`);
}

main();
