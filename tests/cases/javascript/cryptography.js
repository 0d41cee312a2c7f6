//: what: digests, keyed digests, encryption, signatures, key agreement, key derivation and random values
//: stdout: sha256 ba7816bf, gcm ok, tampered refused, rsa true, ed25519 true, shared true, scrypt 32, uuid 36
const assert = require('assert');
const crypto = require('crypto');

const digest = crypto.createHash('sha256').update('abc').digest('hex');
assert.strictEqual(crypto.createHmac('sha256', 'key').update('data').digest('hex').length, 64);

const key = crypto.randomBytes(32), iv = crypto.randomBytes(12);
const cipher = crypto.createCipheriv('aes-256-gcm', key, iv);
const sealed = Buffer.concat([cipher.update('secret text', 'utf8'), cipher.final()]);
function open(bytes) {
  const decipher = crypto.createDecipheriv('aes-256-gcm', key, iv).setAuthTag(cipher.getAuthTag());
  return Buffer.concat([decipher.update(bytes), decipher.final()]).toString();
}
assert.strictEqual(open(sealed), 'secret text');
sealed[0] ^= 1;
assert.throws(() => open(sealed));

function signs(kind, options, algorithm) {
  const { privateKey, publicKey } = crypto.generateKeyPairSync(kind, options);
  const signature = crypto.sign(algorithm, Buffer.from('message'), privateKey);
  return crypto.verify(algorithm, Buffer.from('message'), publicKey, signature)
    && !crypto.verify(algorithm, Buffer.from('massage'), publicKey, signature);
}
const rsa = signs('rsa', { modulusLength: 1024 }, 'sha256'), ed = signs('ed25519', {}, null);

const alice = crypto.createECDH('prime256v1'), bob = crypto.createECDH('prime256v1');
const [a, b] = [alice.generateKeys(), bob.generateKeys()];
const shared = alice.computeSecret(b).equals(bob.computeSecret(a));
const derived = crypto.scryptSync('password', 'salt', 32, { N: 1024 });
assert(crypto.timingSafeEqual(derived, crypto.scryptSync('password', 'salt', 32, { N: 1024 })));
console.log(`sha256 ${digest.slice(0, 8)}, gcm ok, tampered refused, rsa ${rsa}, ed25519 ${ed}, shared ${shared},`,
  `scrypt ${derived.length}, uuid ${crypto.randomUUID().length}`);
