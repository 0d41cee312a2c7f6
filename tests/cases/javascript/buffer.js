//: what: buffers: encodings, numbers of both byte orders, slices that share, searching, swapping, and a blob
//: stdout: 68c3a9 aMOp héx cafe 258 513 -1.5 shared Z index 3 swapped 2143 compare -1,0,1 utf16 8 blob 6 bad \ufffd
const assert = require("assert");
const { Blob, Buffer: Same } = require("buffer");

assert.equal(Same, Buffer);
const text = Buffer.from("hé");
const both = Buffer.concat([text, Buffer.from("x")]);
const numbers = Buffer.alloc(16);
numbers.writeUInt16BE(258, 0);
numbers.writeUInt16LE(258, 2);
numbers.writeDoubleLE(-1.5, 4);
numbers.writeBigInt64BE(-2n ** 40n, 8);
assert.equal(numbers.readBigInt64BE(8), -(2n ** 40n));
numbers.writeDoubleLE(-1.5, 4);
assert.throws(() => numbers.writeUInt8(256, 0), { code: "ERR_OUT_OF_RANGE" });
assert.throws(() => numbers.readUInt32LE(14), RangeError);

const whole = Buffer.from("abc");
whole.subarray(1)[1] = 90;
const copy = Buffer.from(whole);
copy[0] = 0;
assert.equal(whole[0], 97);
const compare = [["a", "b"], ["a", "a"], ["b", "a"]].map(([a, b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
const wide = Buffer.from("abcd", "utf16le");
const invalid = Buffer.from([0xff]).toString().replace("\ufffd", "\\ufffd");
assert.throws(() => new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from([0xff])), TypeError);

const blob = new Blob(["one", "two"]);
blob.text().then((joined) => {
  assert.equal(joined, "onetwo");
  console.log(text.toString("hex"), text.toString("base64"), both.toString(), Buffer.from("cafe", "hex").toString("hex"),
    numbers.readUInt16BE(0), numbers.readUInt16BE(2), numbers.readDoubleLE(4), "shared", whole.toString()[2],
    "index", Buffer.from("needle").indexOf("d"), "swapped", Buffer.from("1234").swap16().toString(), "compare", compare.join(),
    "utf16", wide.length, "blob", blob.size, "bad", invalid);
});
