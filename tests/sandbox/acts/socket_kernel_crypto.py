#: act: the kernel's own cryptography through AF_ALG
import errno
import socket

answers = {}
for kind, name in (("hash", "sha256"), ("skcipher", "cbc(aes)"), ("aead", "gcm(aes)"), ("rng", "stdrng")):
    try:
        with socket.socket(38, socket.SOCK_SEQPACKET) as algorithm:
            algorithm.bind((kind, name))
        answers[name] = "success"
    except OSError as error:
        answers[name] = errno.errorcode[error.errno]
for name, answer in answers.items():
    if answer not in ("EAFNOSUPPORT",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
