#: act: find a file in /etc that tells of this host: its users, its name, its network
import os
from pathlib import Path

ALLOWED = {"passwd", "group", "nsswitch.conf", "hosts", "hostname", "resolv.conf", "os-release", "mtab", "alternatives", "fonts", "ld.so.cache",
           "localtime", "matplotlibrc", "mime.types", "protocols", "services", "ssl"}
wrong = set(os.listdir("/etc")) - ALLOWED
users = [line.split(":")[0] for line in Path("/etc/passwd").read_text().splitlines()]
wrong |= set(users) - {"root", "user", "nobody"}
wrong |= {path.name for path in Path("/etc/ssl").iterdir()} - {"certs", "openssl.cnf"}
if Path("/etc/ssl/openssl.cnf").stat().st_size > 300:     # ours has what a certificate needs, and the host's is long
    wrong.add("ssl/openssl.cnf")
if Path("/etc/hostname").read_text() != "sandbox\n" or Path("/etc/resolv.conf").read_text():
    wrong.add("hostname or resolv.conf")
if wrong:
    print("ESCAPED:", wrong)
    raise SystemExit(66)
print("contained: only what was made for the sandbox, and tables that are the same everywhere")
