//: act: get a module of its own loaded into the runner before the program
//: options: --env NODE_OPTIONS=--require=/home/user/evil.js
//: status: bad_request
console.log('ESCAPED: ran with NODE_OPTIONS');
