//: what: files and folders with fs.promises: write, append, list, copy, link, watch for size, and remove
//: stdout: 3 lines, [a.txt,link,sub], 2 copied, mode 600, missing ENOENT, handle 5 bytes
//: files: report.json
const assert = require('assert');
const fs = require('fs/promises');
const path = require('path');

async function main() {
  const folder = await fs.mkdtemp('/tmp/files-');
  const file = path.join(folder, 'a.txt');
  await fs.writeFile(file, 'one\n');
  await fs.appendFile(file, 'two\nthree\n');
  const lines = (await fs.readFile(file, 'utf8')).trim().split('\n');

  await fs.mkdir(path.join(folder, 'sub/deep'), { recursive: true });
  await fs.symlink('a.txt', path.join(folder, 'link'));
  await fs.copyFile(file, path.join(folder, 'sub/deep/b.txt'));
  const names = (await fs.readdir(folder)).sort();
  await fs.cp(path.join(folder, 'sub'), '/tmp/copied', { recursive: true });
  const copied = await fs.readdir('/tmp/copied', { recursive: true });

  await fs.chmod(file, 0o600);
  const { mode, size } = await fs.stat(file);
  assert.strictEqual(size, 14);
  assert.strictEqual(await fs.readlink(path.join(folder, 'link')), 'a.txt');
  const missing = await fs.readFile(path.join(folder, 'none')).catch((error) => error.code);

  const handle = await fs.open(file, 'r+');
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(5), 0, 5, 4);
  assert.strictEqual(buffer.toString(), 'two\nt');
  await handle.close();
  await fs.rm(folder, { recursive: true });
  await assert.rejects(fs.access(folder));
  await fs.writeFile('report.json', JSON.stringify({ names, copied }));
  console.log(`${lines.length} lines, [${names}], ${copied.length} copied, mode ${(mode & 0o777).toString(8)},`,
    `missing ${missing}, handle ${bytesRead} bytes`);
}

main();
