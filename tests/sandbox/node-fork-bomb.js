//: act: processes from node
//: status: process_limit timeout crashed failed
//: options: --timeout 4s
const { spawn } = require('child_process');
function go() { for (let i = 0; i < 50; i++) spawn('sleep', ['60']).on('error', () => {}); setTimeout(go, 5); }
go();
