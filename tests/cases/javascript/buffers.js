//: what: bytes: encodings, reading and writing numbers, slices, typed arrays, blobs and text decoders
//: stdout: 68c3a9 aMOp héé, numbers -2 3.5 2^53, shared 9, swapped 3412, decoded é, blob 6, equal
//: vm: yes
const assert = require('assert');

const text = Buffer.from('hé');
const joined = Buffer.concat([text, Buffer.from('é')]).toString();

const packed = Buffer.alloc(24);
packed.writeInt16BE(-2, 0);
packed.writeDoubleLE(3.5, 8);
packed.writeBigUInt64BE(2n ** 53n, 16);
const numbers = [packed.readInt16BE(0), packed.readDoubleLE(8), `2^${Math.log2(Number(packed.readBigUInt64BE(16)))}`];

const whole = new ArrayBuffer(16);
const bytes = new Uint8Array(whole), part = Buffer.from(whole, 4, 4);
part[0] = 9;
const view = new DataView(whole);
assert.strictEqual(view.getUint8(4), 9);

const swapped = Buffer.from('1234', 'hex').swap16().toString('hex');
const decoder = new TextDecoder();
const decoded = decoder.decode(Uint8Array.of(0xc3), { stream: true }) + decoder.decode(Uint8Array.of(0xa9));
assert.throws(() => new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.of(0xff)), TypeError);
assert.strictEqual(Buffer.from([0xff, 0x41]).toString('utf8'), '\ufffdA');
assert.strictEqual(Buffer.from('zz', 'hex').length, 0);

new Blob(['abc', Buffer.from('def')]).arrayBuffer().then((content) => {
  const equal = Buffer.from(content).equals(Buffer.from('abcdef')) && Buffer.compare(text, text) === 0;
  console.log(`${text.toString('hex')} ${text.toString('base64')} ${joined}, numbers ${numbers.join(' ')},`,
    `shared ${bytes[4]}, swapped ${swapped}, decoded ${decoded}, blob ${content.byteLength}, ${equal ? 'equal' : 'differs'}`);
});
