//: what: URLs taken apart, resolved and built, query strings, file URLs, names of hosts and bad input
//: stdout: user@example.org:8080 /a b?x=1&x=2#end | https://example.org/c/d?q | q=a+b&t=%C3%BC | /tmp/a b#c | xn--mnchen-3ya.de | ERR_INVALID_URL
import assert from "node:assert/strict";
import querystring from "node:querystring";
import { domainToASCII, fileURLToPath, pathToFileURL } from "node:url";

const url = new URL("http://user:secret@EXAMPLE.org:8080/a%20b?x=1&x=2#end");
assert.deepEqual(url.searchParams.getAll("x"), ["1", "2"]);
assert.equal(url.password, "secret");
const shown = `${url.username}@${url.host} ${decodeURIComponent(url.pathname)}${url.search}${url.hash}`;

const resolved = new URL("../c/./d?q", "https://example.org:443/a/b").href;
const parameters = new URLSearchParams({ t: "ü", q: "a b" });
parameters.append("gone", "1");
parameters.delete("gone");
parameters.sort();
assert.equal(new URLSearchParams(parameters.toString()).get("t"), "ü");
assert.deepEqual({ ...querystring.parse("a=1&b=2&a=3") }, { a: ["1", "3"], b: "2" });
assert.equal(querystring.stringify({ list: [1, 2], text: "ä" }), "list=1&list=2&text=%C3%A4");

const file = pathToFileURL("/tmp/a b#c");
assert.equal(file.href, "file:///tmp/a%20b%23c");
url.port = "80";
url.pathname = "/new path";
assert.equal(url.href, "http://user:secret@example.org/new%20path?x=1&x=2#end");
assert.equal(URL.canParse("no url"), false);
let code;
try { new URL("http://[::1"); } catch (error) { code = error.code; }
console.log([shown, resolved, parameters, fileURLToPath(file), domainToASCII("münchen.de"), code].join(" | "));
