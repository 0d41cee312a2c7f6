"""The network of a sandbox: none, named hosts, or the public ones, on a small Internet of this test's own.

Two network namespaces and a cable between them.  In "host" runs caisson; "internet" has a public address (of IPv4
and IPv6) with servers on it, a name server, and a private address with a server that a sandbox must never reach.
"""
import json
import os
import shutil
import subprocess
import sys
import time

import pytest

BUILD = os.environ.get("CAISSON_BUILD", "build")
CAISSON = os.path.abspath(os.environ.get("CAISSON", os.path.join(BUILD, "caisson")))

PUBLIC4, PUBLIC6 = "93.184.215.14", "2606:2800:21f:cb07::1"
OWN4, OWN6 = "93.184.215.15", "2606:2800:21f:cb07::2"      # public addresses of the host itself
PRIVATE = "10.99.0.2"

HOSTS = f"""
127.0.0.1 localhost
{PUBLIC4} example.org www.example.org port.example.org
{PUBLIC6} six.example.org
{PRIVATE} private.example.org
{PUBLIC4} mixed.example.org
{PRIVATE} mixed.example.org
127.0.0.1 home.example.org
169.254.169.254 metadata.example.org
{OWN4} own.example.org
"""

# What runs in "internet": HTTP on 80, the same with TLS on 443, an echo on 8443, and names on 53.
SERVERS = r'''
import hashlib, http.server, json, socket, socketserver, ssl, sys, threading
folder, public4, public6, private = sys.argv[1:]

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.startswith("/big"):
            body = b"0123456789abcdef" * (1 << 20)
        else:
            length = int(self.headers.get("Content-Length", 0))
            digest = hashlib.sha256(self.rfile.read(length)).hexdigest()
            body = json.dumps({"path": self.path, "headers": dict(self.headers), "length": length, "sha256": digest}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_GET
    def log_message(self, *args):
        pass

class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)

class Threads(socketserver.ThreadingMixIn):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

class Server(Threads, http.server.HTTPServer):
    pass

class Server6(Server):
    address_family = socket.AF_INET6

class EchoServer(Threads, socketserver.TCPServer):
    pass

def names():
    """public.rebind.test is public when asked first and private from then on."""
    seen = set()
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((private, 53))
    while True:
        packet, peer = sock.recvfrom(512)
        end = 12
        while packet[end]:
            end += packet[end] + 1
        question, kind = packet[12:end + 5], packet[end + 2]
        answer = b""
        if b"rebind" in question and kind == 1:
            address = private if question in seen else public4
            seen.add(question)
            answer = b"\xc0\x0c\0\x01\0\x01\0\0\0\0\0\x04" + socket.inet_aton(address)
        code = b"\x81\x80" if b"rebind" in question else b"\x81\x83"
        sock.sendto(packet[:2] + code + b"\0\x01" + bytes([0, 1 if answer else 0]) + b"\0\0\0\0" + question + answer, peer)

def start(server, tls=False):
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder + "/cert.pem", folder + "/key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()

threading.Thread(target=names, daemon=True).start()
for address in public4, private:
    start(Server((address, 80), Handler))
    start(Server((address, 443), Handler), True)
    start(EchoServer((address, 8443), Echo))
start(Server6((public6, 80), Handler))
print("ready", flush=True)
sys.stdin.read()
'''

CABLE = f"""
set -e
ip link add v0 type veth peer name v1 netns "$1"
ip link set lo up
ip addr add 10.99.0.1/24 dev v0
ip addr add {OWN4}/32 dev v0
ip -6 addr add {OWN6}/64 dev v0 nodad
ip link set v0 up
nsenter -t "$1" -n sh -ec '
  ip link set lo up
  ip addr add {PRIVATE}/24 dev v1
  ip addr add {PUBLIC4}/32 dev v1
  ip -6 addr add {PUBLIC6}/64 dev v1 nodad
  ip link set v1 up'
ip route add {PUBLIC4}/32 dev v0 src 10.99.0.1
mount --bind "$2/hosts" /etc/hosts
mount --bind "$2/resolv.conf" /etc/resolv.conf
"""


class World:
    """The two namespaces; host is the process that the first one belongs to."""

    def __init__(self, folder):
        self.folder = str(folder)
        (folder / "hosts").write_text(HOSTS)
        (folder / "resolv.conf").write_text(f"nameserver {PRIVATE}\nsearch example.org\noptions timeout:10 attempts:1\n")
        (folder / "servers.py").write_text(SERVERS)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=example.org", "-days", "2",
                        "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"], check=True, capture_output=True)
        self.host = self.wait_in("unshare", "-n", "-m", "--propagation", "private")
        self.internet = self.wait_in("unshare", "-n")
        self.servers = None

    def wait_in(self, *how):
        process = subprocess.Popen([*how, "sh", "-c", "echo ready; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if process.stdout.readline() != b"ready\n":
            pytest.skip("needs netns: no network namespace can be made here")
        return process

    def connect(self):
        done = subprocess.run(["nsenter", "-t", str(self.host.pid), "-n", "-m", "sh", "-c", CABLE, "sh", str(self.internet.pid),
                               self.folder], capture_output=True, check=False)
        if done.returncode:
            pytest.skip(f"needs veth: {done.stderr.decode().strip()}")
        self.servers = subprocess.Popen(["nsenter", "-t", str(self.internet.pid), "-n", sys.executable, f"{self.folder}/servers.py",
                                         self.folder, PUBLIC4, PUBLIC6, PRIVATE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.servers.stdout.readline() == b"ready\n"

    def end(self):
        for process in self.servers, self.internet, self.host:
            if process:
                process.kill()
                process.wait()

    def command(self, *words):
        return ["nsenter", "-t", str(self.host.pid), "-n", "-m", *words]

    def run(self, language, code, *options, private_hosts=""):
        done = subprocess.run(self.command("env", "CAISSON_DAEMON=never", f"CAISSON_ENGINE_PRIVATE_HOSTS={private_hosts}", CAISSON, "run", "--json", "-l", language, "-c", code, *options), capture_output=True,
                              timeout=120, check=False)
        assert done.stdout, done.stderr.decode()
        return json.loads(done.stdout)

    def python(self, code, *options, private_hosts=""):
        """What the program printed as JSON in its last line."""
        record = self.run("python", code, *options, private_hosts=private_hosts)
        assert record["status"] == "completed", (record["error"], record["stderr"])
        return json.loads(record["stdout"].splitlines()[-1])


@pytest.fixture(scope="module", name="world")
def make_world(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("needs root: a network of its own to test on")
    missing = [tool for tool in ("unshare", "nsenter", "ip", "openssl") if not shutil.which(tool)]
    if missing:
        pytest.skip(f"needs tools: {', '.join(missing)}")
    if not os.path.exists("/etc/resolv.conf"):
        pytest.skip("needs resolv.conf: there is no file to mount the test's own on")
    world = World(tmp_path_factory.mktemp("egress"))
    try:
        world.connect()
        yield world
    finally:
        world.end()


def allow(*hosts):
    return ["--network", "allow", *(word for host in hosts for word in ("--allow", host))]


PUBLIC = ["--network", "public"]

# Inside: one request to the proxy as bytes, and the head of its answer.
ASK = r'''
import json, socket, sys
def ask(line):
    with socket.create_connection(("127.0.0.1", 3128)) as s:
        s.sendall(line.encode() + b"\r\n\r\n")
        answer = b""
        while b"\r\n\r\n" not in answer and (more := s.recv(65536)):
            answer += more
    return answer.decode("latin-1").split("\r\n")[0]
'''

URLLIB = r'''
import json, ssl, urllib.request
no_check = ssl.create_default_context()
no_check.check_hostname, no_check.verify_mode = False, ssl.CERT_NONE
def get(url, **more):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, **more), context=no_check if url[:5] == "https" else None) as answer:
            return json.loads(answer.read())
    except OSError as error:
        return f"{type(error).__name__} {error}"
'''


def test_the_private_server_is_there_for_the_host(world):
    for url in f"http://{PRIVATE}/", f"http://{PUBLIC4}/":
        done = subprocess.run(world.command(sys.executable, "-c", f"import urllib.request as u; print(u.urlopen('{url}').status)"),
                              capture_output=True, check=False, env={"PATH": os.environ["PATH"]})
        assert done.stdout == b"200\n", done.stderr


def test_without_a_network_everything_fails_at_once(world):
    outcome = world.python(r'''
import errno, json, os, socket, time
rows = {}
for address in ["93.184.215.14", "10.99.0.2", "10.99.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "8.8.8.8", "224.0.0.1",
                "2606:2800:21f:cb07::1", "fd00::1", "fe80::1", "2606:2800:21f:cb07::2"]:
    start = time.monotonic()
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as s:
        s.settimeout(5)
        code = s.connect_ex((address, 80))
    rows[address] = [errno.errorcode.get(code, str(code)), time.monotonic() - start]
start = time.monotonic()
try:
    socket.getaddrinfo("example.net", 80)
    found = True
except OSError:
    found = False
with socket.socket() as s:
    proxy = errno.errorcode[s.connect_ex(("127.0.0.1", 3128))]
print(json.dumps([rows, found, proxy, [name for name in os.environ if "proxy" in name.lower()]]))
''')
    rows, found, proxy, variables = outcome
    for address, (code, seconds) in rows.items():
        assert code in ("ENETUNREACH", "EINVAL" if address.startswith("fe80") else "ENETUNREACH"), (address, code)
        assert seconds < 2, address     # who waits for an answer that does not come waits for longer
    assert not found and proxy == "ECONNREFUSED" and not variables


def test_a_named_host_is_reached_and_the_record_says_how(world):
    record = world.run("python", URLLIB + r'''
print(json.dumps([get("http://example.org/a?b"), get("https://example.org/c"), get("http://EXAMPLE.org:80/", data=b"x" * 100000)]))
''', *allow("example.org"))
    assert record["status"] == "completed", record["stderr"]
    assert record["boundary"]["network"] == "proxy"
    plain, tls, post = json.loads(record["stdout"])
    usage = record["usage"]    # S2-41
    assert usage["network_connections"] == 3 and usage["network_refused"] == 0
    assert 100000 < usage["network_out_bytes"] < 200000 and 300 < usage["network_in_bytes"] < 100000, usage
    assert plain["path"] == "/a?b" and plain["headers"]["Host"] == "example.org" and plain["headers"]["Connection"] == "close"
    assert not [name for name in plain["headers"] if name.lower().startswith("proxy")]
    assert tls["path"] == "/c"
    assert post["length"] == 100000


def test_curl_reaches_a_named_host(world):
    if not shutil.which("curl"):
        pytest.skip("needs curl: not installed")
    record = world.run("bash", "set -e; curl -sS http://www.example.org/plain; echo; curl -sSk https://www.example.org/tls; echo; "
                       "curl -sS -w '%{http_code}\\n' -o /dev/null http://other.test/ ; "
                       "head -c 3000000 /dev/zero | curl -sS -T - -X POST http://www.example.org/up >/dev/null; "
                       "! curl -sSk https://other.test/", *allow("*.example.org"))
    plain, tls, code = record["stdout"].splitlines()[:3]
    assert json.loads(plain)["path"] == "/plain" and json.loads(tls)["path"] == "/tls", record
    assert code == "403" and "403" in record["stderr"]
    assert record["status"] == "completed"


def test_node_reaches_a_named_host(world):
    record = world.run("javascript", r'''
const http = require('http'), tls = require('tls');
const proxy = new URL(process.env.HTTP_PROXY);
const plain = path => new Promise((done, fail) => http.get({ host: proxy.hostname, port: proxy.port, path, headers: { Host: 'x' } },
    answer => { let text = ''; answer.on('data', d => text += d); answer.on('end', () => done([answer.statusCode, text])); }).on('error', fail));
const tunnel = path => new Promise((done, fail) => http.request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path })
    .on('connect', (answer, socket) => {
        if (answer.statusCode !== 200) { socket.destroy(); return done([answer.statusCode, answer.statusMessage]); }
        const secure = tls.connect({ socket, servername: 'example.org', rejectUnauthorized: false }, () => {
            let text = '';
            secure.on('data', d => text += d).on('end', () => done([200, text]));
            secure.write('GET /node HTTP/1.0\r\nHost: example.org\r\n\r\n');
        });
    }).on('error', fail).end());
(async () => {
    console.log(JSON.stringify([await plain('http://example.org/n'), await tunnel('example.org:443'), await tunnel('other.test:443')]));
})();
''', *allow("example.org"))
    assert record["status"] == "completed", record["stderr"]
    plain, tls, refused = json.loads(record["stdout"])
    assert plain[0] == 200 and json.loads(plain[1])["headers"]["Host"] == "example.org"
    assert tls[0] == 200 and '"/node"' in tls[1]
    assert refused[0] == 403 and "not among" in refused[1]


def test_other_hosts_are_refused_with_a_reason(world):
    record = world.run("python", URLLIB + r'''
print(json.dumps([get("http://www.example.org/"), get("https://www.example.org/"), get("https://93.184.215.14/"),
                  get("http://example.org:8443/"), get("http://example.org:22/")]))
''', *allow("example.org"))
    assert record["status"] == "completed", record["stderr"]
    answers = json.loads(record["stdout"])
    assert all("403" in answer for answer in answers), answers
    # Even of a tunnel, where Python shows no more than the status line.
    assert "www.example.org is not among the hosts named in allow" in answers[1]
    texts = [warning["text"] for warning in record["warnings"] if warning["code"] == "connection_refused"]
    assert any("www.example.org:443" in text for text in texts), record["warnings"]


REFUSED = [
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "017700000001", "0177.0.0.1", "0", "localhost", "home.example.org",
    "10.99.0.2", "10.99.0.1", "0x0a630002", "174260226", "012.99.2", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
    "169.254.169.254", "2852039166", "0xa9.0xfe.0xa9.0xfe", "169.254.43518", "metadata.example.org", "100.100.100.200", "168.63.129.16",
    "192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1",
    "[::1]", "[::]", "[fd00::1]", "[fd00:ec2::254]", "[fe80::1]", "[fec0::1]", "[ff02::1]", "[2001:db8::1]",
    "[::ffff:10.99.0.2]", "[::ffff:a9fe:a9fe]", "[::10.99.0.2]", "[64:ff9b::10.99.0.2]", "[2002:a63:2::1]", "[::ffff:127.0.0.1]",
    "private.example.org", "mixed.example.org", "own.example.org", OWN4, f"[{OWN6}]",
]


@pytest.mark.parametrize("options", [PUBLIC, allow("*.example.org", "localhost")], ids=["public", "allow"])
def test_what_is_not_public_is_refused_however_it_is_written(world, options):
    answers = world.python(ASK + f"print(json.dumps({{h: [ask(f'CONNECT {{h}}:443 HTTP/1.1'), ask(f'GET http://{{h}}/ HTTP/1.1')] "
                           f"for h in {REFUSED!r}}}))", *options)
    assert len(answers) == len(REFUSED)
    for host, both in answers.items():
        assert all(answer.startswith("HTTP/1.1 403 ") for answer in both), (host, both)


def statuses(world, hosts, *options, private_hosts):
    """The status of CONNECT to each of HOST:PORT."""
    answers = world.python(ASK + f"print(json.dumps([ask(f'CONNECT {{h}} HTTP/1.1') for h in {hosts!r}]))", *options, private_hosts=private_hosts)
    return [int(answer.split()[1]) for answer in answers]


def test_private_hosts_of_the_administrator_are_reached_and_no_other(world):
    hosts = ["private.example.org:80", "10.99.0.2:80", "home.example.org:80", "metadata.example.org:80", "10.99.0.1:80", "example.org:80"]
    entries = "private.example.org, metadata.example.org,*.nothing.test"
    assert statuses(world, hosts, *PUBLIC, private_hosts=entries) == [200, 403, 403, 403, 403, 200]
    assert statuses(world, hosts, *PUBLIC, private_hosts="10.99.0.2") == [403, 200, 403, 403, 403, 200]
    assert statuses(world, hosts, *PUBLIC, private_hosts="") == [403, 403, 403, 403, 403, 200]


def test_private_hosts_need_a_rule_of_the_request(world):
    hosts = ["private.example.org:80", "www.example.org:80"]
    assert statuses(world, hosts, *allow("www.example.org"), private_hosts="private.example.org") == [403, 200]
    assert statuses(world, hosts, *allow("private.example.org"), private_hosts="private.example.org") == [200, 403]
    assert world.run("python", "print(1)", private_hosts="private.example.org")["status"] == "completed"


def test_a_private_host_opens_its_own_port_only(world):
    hosts = ["private.example.org:8443", "private.example.org:80", "private.example.org:22"]
    assert statuses(world, hosts, *PUBLIC, private_hosts="private.example.org:8443") == [200, 403, 403]


@pytest.mark.parametrize("entry", ["*", "http://mirror.house", "10.0.0.0/8"])
def test_an_entry_that_is_no_private_host_is_an_error_of_the_setting(world, entry):
    done = subprocess.run(world.command("env", "CAISSON_DAEMON=never", f"CAISSON_ENGINE_PRIVATE_HOSTS={entry}", CAISSON, "run", "-l", "python", "-c", "1"),
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 78 and "engine.private_hosts" in done.stderr, done


def test_addresses_with_a_zone_and_other_riddles_are_malformed(world):
    answers = world.python(ASK + r'''
print(json.dumps([ask(line) for line in ["CONNECT [fe80::1%25lo]:443 HTTP/1.1", "CONNECT [::1%lo]:80 HTTP/1.1", "CONNECT ::1:80 HTTP/1.1",
    "GET http://example.org@10.99.0.2/ HTTP/1.1", "GET http://10.99.0.2\\@example.org/ HTTP/1.1", "CONNECT 10.99.0.256:80 HTTP/1.1",
    "CONNECT 127%2e0.0.1:80 HTTP/1.1", "GET / HTTP/1.1\r\nHost: 10.99.0.2", "GET http://example.org/ HTTP/1.1\r\nHost: a\r\nHost: b"]]))
''', *PUBLIC)
    assert all(answer.startswith("HTTP/1.1 400 ") for answer in answers), answers


def test_public_hosts_are_reached_by_name_and_by_address_in_both_families(world):
    answers = world.python(URLLIB + ASK + f'''
print(json.dumps([get("http://example.org/1"), get("https://{PUBLIC4}/2"), get("http://[{PUBLIC6}]/3"), get("http://six.example.org/4"),
                  ask("GET http://example.org:8443/ HTTP/1.1"), ask("CONNECT nowhere.test:443 HTTP/1.1")]))
''', *PUBLIC)
    assert [answer["path"] for answer in answers[:4]] == ["/1", "/2", "/3", "/4"]
    assert answers[4].startswith("HTTP/1.1 403 ") and "port 8443" in answers[4]
    assert answers[5].startswith("HTTP/1.1 502 ") and "no such name" in answers[5]


def test_a_name_is_whole_and_not_completed_from_the_host_s_search_list(world):
    answer = world.python(ASK + "print(json.dumps(ask('CONNECT www:443 HTTP/1.1')))", *PUBLIC)
    assert answer.startswith("HTTP/1.1 502 ")


def test_a_name_that_turns_private_is_refused_from_then_on(world):
    answers = world.python(ASK + "print(json.dumps([ask('GET http://a.rebind.test/ HTTP/1.1') for _ in range(3)]))", *PUBLIC)
    assert answers[0].startswith("HTTP/1.0 200")      # from the server, at the address that was checked
    assert all(answer.startswith("HTTP/1.1 403 ") for answer in answers[1:])


def test_a_rule_opens_a_port(world):
    outcome = world.python(r'''
import json, socket
with socket.create_connection(("127.0.0.1", 3128)) as s:
    s.sendall(b"CONNECT port.example.org:8443 HTTP/1.1\r\n\r\nearly")
    text = b""
    while not text.endswith(b"early"):
        text += s.recv(1000)
    s.sendall(b"late")
    s.shutdown(socket.SHUT_WR)
    while more := s.recv(1000):
        text += more
print(json.dumps(text.decode()))
''', *allow("port.example.org:8443"))
    assert outcome.startswith("HTTP/1.1 200 ") and outcome.endswith("\r\n\r\nearlylate")


def test_without_the_proxy_there_is_no_way(world):
    outcome = world.python(r'''
import errno, json, socket
def tcp(address, port):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as s:
        s.settimeout(5)
        return errno.errorcode[s.connect_ex((address, port))]
def udp(address):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            return s.sendto(b"x", (address, 53))
        except OSError as error:
            return errno.errorcode[error.errno]
try:
    named = socket.getaddrinfo("example.net", 80)
except OSError as error:
    named = "nothing"
print(json.dumps([[tcp(a, 80) for a in ("93.184.215.14", "10.99.0.2", "2606:2800:21f:cb07::1")],
                  [udp(a) for a in ("93.184.215.14", "10.99.0.2", "2606:2800:21f:cb07::1")], named,
                  [name for _, name in socket.if_nameindex()]]))
''', *PUBLIC)
    tcp, udp, named, interfaces = outcome
    assert tcp == ["ENETUNREACH"] * 3 and udp == ["ENETUNREACH"] * 3
    assert named == "nothing" and interfaces == ["lo"]


def test_much_data_arrives_whole(world):
    outcome = world.python(URLLIB + r'''
import hashlib, os
data = os.urandom(8 << 20)
up = get("https://example.org/up", data=data)
with urllib.request.urlopen("https://example.org/big", context=no_check) as answer:
    down = hashlib.sha256(answer.read()).hexdigest()
print(json.dumps([up["sha256"] == hashlib.sha256(data).hexdigest(), down == hashlib.sha256(b"0123456789abcdef" * (1 << 20)).hexdigest()]))
''', *allow("example.org"))
    assert outcome == [True, True]


def test_many_connections_get_an_answer_each(world):
    outcome = world.python(r'''
import json, socket, time
def tunnel():
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(b"CONNECT port.example.org:8443 HTTP/1.1\r\n\r\n")
    return s, s.recv(1000).decode().split("\r\n")[0]
held, refused = [], []
for _ in range(70):
    s, answer = tunnel()
    (held if answer.startswith("HTTP/1.1 200") else refused).append(s)
for s in held + refused:
    s.close()
# The ends still have to travel to the server and back.
end = time.monotonic() + 20
while "200" not in (again := tunnel()[1]) and time.monotonic() < end:
    time.sleep(0.05)
print(json.dumps([len(held), len(refused), answer, again]))
''', *allow("port.example.org:8443"))
    assert outcome[:2] == [64, 6]
    assert "64 connections open" in outcome[2] and outcome[3].startswith("HTTP/1.1 200 "), outcome


def test_connections_end_with_the_program(world):
    start = time.monotonic()
    record = world.run("python", r'''
import os, socket
for _ in range(10):
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(b"CONNECT port.example.org:8443 HTTP/1.1\r\n\r\n")
    s.recv(1000)
    os.dup(s.fileno())
print("left open")
''', *allow("port.example.org:8443"))
    assert record["status"] == "completed" and record["stdout"] == "left open\n"
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("rule", ["10.0.0.1", "*", "*.com", "http://example.org", "example.org:0", "[::1]", "a b"])
def test_a_rule_that_is_none_is_a_bad_request(world, rule):
    record = world.run("python", "print(1)", *allow(rule))
    assert record["status"] == "bad_request" and record["stdout"] == "", record
    assert record["error"]["field"] == "/allow", record["error"]
