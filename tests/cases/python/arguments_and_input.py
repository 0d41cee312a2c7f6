#: what: command line arguments with argparse, and standard input line by line
#: args: --scale 3 "two words" -v
#: stdin: 1\n2\nnot a number\n4\n
#: stdout: scale 3 name 'two words' verbose True sum 21 skipped 1
#: vm: yes
import argparse
import sys

parser = argparse.ArgumentParser(description="Add up the numbers of standard input.")
parser.add_argument("name")
parser.add_argument("--scale", type=int, default=1)
parser.add_argument("-v", "--verbose", action="store_true")
options = parser.parse_args()
assert sys.argv[0].endswith("/main.py") and len(sys.argv) == 5

total, skipped = 0, 0
for line in sys.stdin:
    try:
        total += int(line) * options.scale
    except ValueError:
        skipped += 1
assert sys.stdin.read() == "" and not sys.stdin.isatty()
print(f"scale {options.scale} name {options.name!r} verbose {options.verbose} sum {total} skipped {skipped}")
