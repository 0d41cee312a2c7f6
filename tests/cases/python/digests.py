#: what: digests, message authentication, key derivation, secrets and unique identifiers
#: stdout: sha256 ba7816bf, blake2b ok, hmac ok, scrypt ok, 64 tokens differ, uuid 5 4
import hashlib
import hmac
import secrets
import uuid
import zlib

digest = hashlib.sha256(b"abc").hexdigest()
for name in sorted(hashlib.algorithms_guaranteed):
    if not name.startswith("shake"):
        assert len(hashlib.new(name, b"x").digest()) == hashlib.new(name).digest_size

keyed = hashlib.blake2b(b"data", key=b"key", digest_size=16).digest()
assert keyed != hashlib.blake2b(b"data", key=b"kez", digest_size=16).digest()

signature = hmac.new(b"key", b"message", "sha512").digest()
assert hmac.compare_digest(signature, hmac.digest(b"key", b"message", "sha512"))

derived = hashlib.scrypt(b"password", salt=b"salt", n=2 ** 10, r=8, p=1, dklen=32)
assert derived == hashlib.scrypt(b"password", salt=b"salt", n=2 ** 10, r=8, p=1, dklen=32)
assert len(hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 1000)) == 32

tokens = {secrets.token_hex(16) for _ in range(64)}
assert zlib.crc32(b"hello") == 907060870
named = uuid.uuid5(uuid.NAMESPACE_DNS, "example.org")
assert str(named) == "aad03681-8b63-5304-89e0-8ca8f49461b5" and uuid.uuid1() != uuid.uuid1()
print(f"sha256 {digest[:8]}, blake2b ok, hmac ok, scrypt ok, {len(tokens)} tokens differ,",
      f"uuid {named.version} {uuid.uuid4().version}")
