//: what: command line arguments with spaces, quotes, an empty word and letters of other scripts
//: args: --scale=2 'two words' '' -- -x 'ü"☂' 3
//: stdout: {"scale":2,"rest":["two words","","-x","ü\"☂","3"]} of 7
const assert = require("assert");
const path = require("path");

const [program, script, ...words] = process.argv;
assert.equal(path.basename(program), "node");
assert.equal(script, __filename);
const options = { scale: 1 };
const rest = [];
let only_rest = false;
for (const word of words) {
  const match = only_rest ? null : /^--(\w+)=(\d+)$/.exec(word);
  if (match) options[match[1]] = Number(match[2]);
  else if (word === "--" && !only_rest) only_rest = true;
  else rest.push(word);
}
console.log(JSON.stringify({ ...options, rest }), "of", words.length);
