//: act: start worker threads without end
//: options: --pids 64 --timeout 5s
//: status: completed process_limit memory_exceeded crashed failed timeout
//: host-check: nothing_left
const { Worker } = require('worker_threads');

let started = 0;
function more() {
  if (started >= 200) {
    console.log('ESCAPED:', started, 'workers');
    process.exit(66);
  }
  const worker = new Worker('setInterval(() => {}, 1000)', { eval: true });
  worker.on('online', () => { started++; more(); });
  worker.on('error', (error) => { console.log('contained:', error.code, started); process.exit(0); });
}

more();
