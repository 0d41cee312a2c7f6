#: what: whole-number arithmetic, bases, bit operations, and fractions by scaling and by awk
#: stdout: primes 2 3 5 7 11 13; gcd 12; 255 ff 11111111; 2^40 1099511627776; pi 3.1416; 1/7 0.142857
#: vm: yes
set -u
primes=()
for ((n = 2; n < 15; n++)); do
    for ((d = 2; d * d <= n; d++)); do
        ((n % d == 0)) && continue 2
    done
    primes+=("$n")
done

gcd() {
    local a=$1 b=$2
    while ((b)); do
        ((t = a % b, a = b, b = t))
    done
    echo "$a"
}

bits=
for ((value = 0xff; value; value >>= 1)); do
    bits=$((value & 1))$bits
done
printf -v hex '%x' $((2#11111111))
pi=$(awk 'BEGIN { printf "%.4f", atan2(0, -1) }')
sevenths=$((1000000 / 7))
((-7 / 2 == -3 && -7 % 2 == -1 && 16#ff == 255 && 010 == 8 && (5 > 3 ? 1 : 0)))
((x = 5, x += 3, x <<= 1, x ^= 1))
[[ $x -eq 17 && $((~0)) -eq -1 && $((9223372036854775807 + 1)) -lt 0 ]] || exit 1
echo "primes ${primes[*]}; gcd $(gcd 84 36); 255 $hex $bits; 2^40 $((2 ** 40)); pi $pi; 1/7 0.$sevenths"
