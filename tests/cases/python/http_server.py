#: what: a threaded HTTP server on the loopback interface, with GET, POST, an error and JSON
#: stdout: 200 {'path': '/hello?x=1'}; 201 {'length': 11}; 404
import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith("/hello"):
            self.answer(200, {"path": self.path})
        else:
            self.answer(404, {})

    def do_POST(self):
        self.answer(201, {"length": len(self.rfile.read(int(self.headers["Content-Length"])))})

    def log_message(self, *_):
        pass


with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://localhost:{server.server_port}"
    seen = []
    for path, data in (("/hello?x=1", None), ("/new", b"hello world")):
        with urllib.request.urlopen(base + path, data, timeout=5) as response:
            seen.append(f"{response.status} {json.load(response)}")
    try:
        urllib.request.urlopen(base + "/missing", timeout=5)
    except urllib.error.HTTPError as error:
        seen.append(str(error.code))
    server.shutdown()
print("; ".join(seen))
