#!/usr/bin/python3
"""A server of the Model Context Protocol, good and evil, over stdio or over HTTP: mcp_stub.py [--http] BEHAVIOUR ...

`Server.answer()` is the protocol; a behaviour changes one thing of it.  Over HTTP the port is printed.
"""

import json
import os
import sys
import time

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}


def tool(name, schema=None, **more):
    return {"name": name, "description": f"Tool {name}.", "inputSchema": schema or {"type": "object"}, **more}


TOOLS = [tool("add", NUMBERS, outputSchema={"type": "object"}), tool("echo", TEXT), tool("fail"), tool("image"), tool("sleep"), tool("exit"),
         tool("environment"), tool("asked"), tool("heard"), tool("never"), tool("grow"), tool("_hidden"), tool("bad name"), tool("echo", TEXT)]


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


class Server:
    def __init__(self, behaviours, send):
        self.behaviours, self.send = set(behaviours), send
        self.modern = "modern" in self.behaviours
        self.asked = {}
        self.heard = []
        self.later = []

    def answer(self, message):
        """What goes back to one message: messages, in order."""
        method, ident = message.get("method"), message.get("id")
        self.heard.append(message)
        if method == "tools/call" and message["params"]["name"] == "never":
            return []
        if method is None:
            self.asked[ident] = message
            return []
        if ident is None:
            return []
        if "hangs" in self.behaviours or ("hangs-at-calls" in self.behaviours and method == "tools/call"):
            return []
        result = self.result(method, message.get("params") or {})
        answers = [{"jsonrpc": "2.0", "id": ident, **result}]
        if "twice" in self.behaviours:
            answers = [{"jsonrpc": "2.0", "id": 999999, "result": {}}, {"jsonrpc": "2.0", "id": "text", "result": {}}, *answers, *answers]
        return answers

    def result(self, method, params):
        if self.modern and "io.modelcontextprotocol/protocolVersion" not in params.get("_meta", {}):
            return {"error": {"code": -32602, "message": "no version in _meta"}}
        known = {"server/discover": self.discover} if self.modern else {"initialize": self.initialize}
        known |= {"tools/list": self.list, "tools/call": self.call}
        if method not in known:
            if "dies-of-unknown" in self.behaviours:
                os._exit(3)
            return {"error": {"code": -32601, "message": f"no method {method}"}}
        result = known[method](params)
        if "error" in result:
            return result
        return {"result": {"resultType": "complete", **result} if self.modern else result}

    def discover(self, _params):
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": {"name": "stub", "version": "1"}}

    def initialize(self, params):
        version = "1999-01-01" if "old" in self.behaviours else params["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "stub", "version": "1"}}

    def list(self, params):
        cursor = params.get("cursor", "0")
        if "circle" in self.behaviours:
            return {"tools": [tool(f"page{cursor}")], "nextCursor": str((int(cursor) + 1) % 3)}
        if "endless-pages" in self.behaviours:
            return {"tools": [tool(f"page{cursor}")], "nextCursor": str(int(cursor) + 1)}
        if "many" in self.behaviours:
            return {"tools": [tool(f"tool{i}") for i in range(100_000)]}
        if "no-list" in self.behaviours:
            return {"tools": "none"}
        if "long" in self.behaviours:
            return {"tools": [tool("long", description="ä" * 100_000), tool("wide", {"type": "object", "description": "x" * 300_000})]}
        at = int(cursor)
        return {"tools": TOOLS[at:at + 4], **({"nextCursor": str(at + 4)} if at + 4 < len(TOOLS) else {})}

    def call(self, params):
        name, given = params["name"], params.get("arguments", {})
        if name == "add":
            return text(str(given["a"] + given["b"]), structuredContent={"sum": given["a"] + given["b"]})
        if name == "echo":
            return text(given["text"])
        if name == "fail":
            return text("it went wrong", isError=True)
        if name == "image":
            return {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}
        if name == "sleep" and "tells" in self.behaviours:
            token = params["_meta"]["progressToken"]
            for one in ({"progressToken": token, "progress": 1, "total": 2, "message": "half"}, {"progressToken": token + 1000, "progress": 9},
                        {"progressToken": token, "progress": "much"}, {"progressToken": [], "progress": 1}, {}):
                self.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": one})
        if name == "sleep":
            time.sleep(given.get("s", 1))
            return text("slept")
        if name == "exit":
            print("going down", file=sys.stderr, flush=True)
            os._exit(7)
        if name == "environment":
            return text(json.dumps(dict(os.environ)))
        if name == "huge":
            return text("x" * (20 << 20))
        if name == "surrogate":
            return text("\ud800", id={"id": 1}, method="x")
        if name == "no-content":
            return {"content": [{"no": "type"}]}
        if name == "input":
            return {"resultType": "input_required", "inputRequests": {}}
        if name == "heard":
            return text(json.dumps([[m.get("method"), m.get("params", {}).get("requestId")] for m in self.heard]))
        if name == "grow":
            TOOLS.append(tool(f"grown{len(TOOLS)}"))
            self.send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            return text("grown")
        if name == "asked":
            return self.ask_client()
        return {"error": {"code": -32602, "message": f"no tool {name}"}}

    def ask_client(self):
        """What the client says to our own requests, read from the stream that its answers come on."""
        for ident, method in (("p", "ping"), (7, "roots/list"), (8, "sampling/createMessage"), (9, "elicitation/create")):
            self.send({"jsonrpc": "2.0", "id": ident, "method": method, "params": {}})
        while len(self.asked) < 4:
            self.later += self.answer(json.loads(sys.stdin.readline()))
        return text(json.dumps([self.asked[i].get("result", self.asked[i].get("error")) for i in ("p", 7, 8, 9)]))


def stdio(behaviours):
    def send(message):
        if "deep" in behaviours and "content" in message.get("result", {}):
            sys.stdout.write('{"jsonrpc":"2.0","id":%d,"result":%s{}%s}\n' % (message["id"], '{"a":' * 100_000, "}" * 100_000))
        else:
            sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    if "dies" in behaviours:
        print("no licence\x1b[31m", file=sys.stderr)
        sys.exit(4)
    if "junk" in behaviours:
        print("Welcome!\n\n{not json}", flush=True)
    if "endless-line" in behaviours:
        while True:
            sys.stdout.write("x" * 1_000_000)
    if "noise" in behaviours:
        for i in range(2000):
            print(f"line {i}", file=sys.stderr)
    server = Server(behaviours, send)
    for line in sys.stdin:
        for answer in server.answer(json.loads(line)):
            send(answer)


def http(behaviours):
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    sessions, counts = set(), {"calls": 0, "gets": 0}
    log = open(os.environ["STUB_LOG"], "a", buffering=1) if "STUB_LOG" in os.environ else None

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_args):
            pass

        def say(self, status, body=b"", kind="application/json", **headers):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            counts["gets"] += 1
            if log:
                log.write(json.dumps({"get": dict(self.headers)}) + "\n")
            if "resumes" in behaviours and self.headers.get("Last-Event-ID") == "e1":
                done = {"jsonrpc": "2.0", "id": counts["id"], "result": text("resumed")}
                self.say(200, f"id: e2\ndata: {json.dumps(done)}\n\n".encode(), "text/event-stream")
            else:
                self.say(405)

        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            method = message.get("method")
            if log:
                log.write(json.dumps({"headers": dict(self.headers), "message": message}) + "\n")
            if "redirects" in behaviours:
                return self.say(302, Location="http://127.0.0.1:1/")
            if "broken" in behaviours:
                return self.say(500, b"<html>no</html>", "text/html")
            if "modern" in behaviours and self.headers.get("Mcp-Method") != method:
                return self.say(400, json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32020, "message": "header"}}).encode())
            if "modern" not in behaviours and method not in ("initialize", "server/discover") and self.headers.get("Mcp-Session-Id") not in sessions:
                return self.say(404)
            if method == "tools/call":
                counts["calls"] += 1
                counts["id"] = message["id"]
                if "forgets" in behaviours and counts["calls"] == 1:
                    sessions.clear()
                    return self.say(404)
                if "resumes" in behaviours:
                    return self.say(200, b"retry: 50\nid: e1\ndata:\n\n", "text/event-stream")
                if "cut" in behaviours:
                    return self.say(200, b"data: {\"jsonrpc\"\n\n", "text/event-stream")
            answers = Server(behaviours, None).answer(message)
            more = {}
            if method == "initialize" and "modern" not in behaviours:
                sessions.add(f"session-{len(sessions)}-{os.getpid()}")
                more["Mcp_Session_Id"] = sorted(sessions)[-1]
            if not answers:
                return self.say(202)
            if "sse" in behaviours:
                body = ": hello\n\n" + "".join(f"event: message\r\ndata: {json.dumps(a)}\r\n\r\n" for a in answers)
                return self.say(200, body.encode(), "text/event-stream", **more)
            return self.say(200, json.dumps(answers[0]).encode(), **more)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        http(sys.argv[2:])
    else:
        stdio(sys.argv[1:])
