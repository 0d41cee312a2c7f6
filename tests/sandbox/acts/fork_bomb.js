//: act: start copies of itself without end
//: options: --timeout 3s --pids 64
//: status: process_limit memory_exceeded timeout
const { spawn } = require('child_process');

function more() {
  for (let n = 0; n < 4; n++)
    spawn(process.execPath, [__filename], { stdio: 'ignore', detached: true }).on('error', () => {});
  setImmediate(more);
}

more();
