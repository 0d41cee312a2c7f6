// All primes below a million, and how far apart neighbours are.
const limit = 1_000_000;
const composite = new Uint8Array(limit);
const gaps = new Map();
let count = 0;
let previous = 2;

for (let n = 2; n < limit; n++) {
  if (composite[n]) continue;
  count++;
  for (let multiple = n * n; multiple < limit; multiple += n) composite[multiple] = 1;
  if (n > 3) gaps.set(n - previous, (gaps.get(n - previous) ?? 0) + 1);
  previous = n;
}

console.log(`${count} primes below ${limit}; the largest is ${previous}.`);
const most = Math.max(...gaps.values());
for (const [gap, times] of [...gaps].sort((a, b) => a[0] - b[0]).slice(0, 10))
  console.log(`gap ${String(gap).padStart(2)}  ${"█".repeat(Math.round((times / most) * 40))} ${times}`);
