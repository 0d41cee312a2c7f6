//: what: digests, authentication codes, ciphers, signatures, key agreement and random values
//: stdout: ba7816bf hmac true gcm true tampered true ed25519 true x25519 true scrypt 32 uuid true
const assert = require("assert");
const crypto = require("crypto");

const digest = crypto.createHash("sha256").update("a").update("bc").digest("hex");
assert.equal(digest.length, 64);
const code = crypto.createHmac("sha512", "key").update("text").digest();
const same = crypto.timingSafeEqual(code, crypto.createHmac("sha512", "key").update("text").digest());

const key = crypto.randomBytes(32), nonce = crypto.randomBytes(12);
const cipher = crypto.createCipheriv("aes-256-gcm", key, nonce);
const sealed = Buffer.concat([cipher.update("sécret ☂", "utf8"), cipher.final()]);
const open = (text) => {
  const decipher = crypto.createDecipheriv("aes-256-gcm", key, nonce).setAuthTag(cipher.getAuthTag());
  return decipher.update(text, undefined, "utf8") + decipher.final("utf8");
};
const opened = open(sealed) === "sécret ☂";
sealed[0] ^= 1;
let tampered = false;
try { open(sealed); } catch { tampered = true; }

const { publicKey, privateKey } = crypto.generateKeyPairSync("ed25519");
const signature = crypto.sign(null, Buffer.from("letter"), privateKey);
const valid = crypto.verify(null, Buffer.from("letter"), publicKey, signature)
  && !crypto.verify(null, Buffer.from("better"), publicKey, signature);

const [ann, bob] = [crypto.generateKeyPairSync("x25519"), crypto.generateKeyPairSync("x25519")];
const secret = crypto.diffieHellman({ privateKey: ann.privateKey, publicKey: bob.publicKey });
const agreed = secret.equals(crypto.diffieHellman({ privateKey: bob.privateKey, publicKey: ann.publicKey }));

const derived = crypto.scryptSync("password", "salt", 32, { N: 1024 });
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4/.test(crypto.randomUUID());
console.log(digest.slice(0, 8), "hmac", same, "gcm", opened, "tampered", tampered, "ed25519", valid,
  "x25519", agreed, "scrypt", derived.length, "uuid", uuid);
