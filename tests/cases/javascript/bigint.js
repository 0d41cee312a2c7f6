//: what: large integers: factorials, modular powers, roots, bases, shifts, fixed widths and mixed comparison
//: stdout: 50! ends 12 zeros, 2^127-1 prime true, root 1414213562373095048801688724209, hex ffffffffffffffff, wraps -1 0, mixed true
//: vm: yes
const assert = require("assert");

let factorial = 1n;
for (let n = 1n; n <= 50n; n++) factorial *= n;
const zeros = /0*$/.exec(String(factorial))[0].length;

function power(base, exponent, modulus) {
  let result = 1n;
  for (base %= modulus; exponent > 0n; exponent >>= 1n, base = (base * base) % modulus)
    if (exponent & 1n) result = (result * base) % modulus;
  return result;
}

function probablyPrime(n) {
  let d = n - 1n, r = 0;
  while (d % 2n === 0n) { d /= 2n; r++; }
  return [2n, 3n, 5n, 7n, 11n, 13n].every((a) => {
    let x = power(a, d, n);
    if (x === 1n || x === n - 1n) return true;
    for (let i = 1; i < r; i++) if ((x = (x * x) % n) === n - 1n) return true;
    return false;
  });
}

function root(n) {
  let x = 1n << BigInt(n.toString(2).length / 2 + 1 | 0);
  for (let y = (x + n / x) / 2n; y < x; y = (x + n / x) / 2n) x = y;
  return x;
}

const mersenne = (1n << 127n) - 1n;
assert.equal(probablyPrime(mersenne + 2n), false);
assert.equal(-7n / 2n, -3n);
assert.equal(-7n % 2n, -1n);
assert.throws(() => 1n + 1, TypeError);
assert.throws(() => BigInt(1.5), RangeError);
assert.throws(() => JSON.stringify(1n), TypeError);
const wide = new BigUint64Array([2n ** 64n - 1n]);
console.log(`50! ends ${zeros} zeros, 2^127-1 prime ${probablyPrime(mersenne)}, root ${root(2n * 10n ** 60n)},`,
  `hex ${wide[0].toString(16)}, wraps ${BigInt.asIntN(64, wide[0])} ${BigInt.asUintN(8, 256n)}, mixed ${2n > 1 && 2n == 2 && 2n !== 2}`);
