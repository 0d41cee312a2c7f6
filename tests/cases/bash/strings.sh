#: what: parameter expansion: defaults, parts, replacement, case, length, quoting and indirection
#: stdout: archive tar.gz /data .gz | HELLO World | Xb-Xb 7 | default set | value | 'it'\''s' | Grüße 5
#: vm: yes
set -u
path=/data/archive.tar.gz
file=${path##*/}
parts="${file%%.*} ${file#*.} ${path%/*} .${path##*.}"

greeting='hello world'
upper=${greeting:0:5}
second=${greeting: -5}
cases="${upper^^} ${second^}"

text=ab-ab
replaced="${text//a/X} $((${#text} + 2))"
unset missing
fallback="${missing:-default}"
: "${missing:=set}"
name=target
target=value

quoted="'it'\\''s'"
[[ $(eval "echo $quoted") == "it's" && ${text@Q} == "'ab-ab'" ]] || exit 1
word=Grüße
printf -v padded '%-8s|%04d|%5.2f|%x' "$upper" 42 3.14159 255
[[ $padded == 'hello   |0042| 3.14|ff' ]] || exit 1
[[ ${greeting/#hello/bye} == 'bye world' && ${greeting,,} == "$greeting" && ${text:1:2} == b- ]] || exit 1
echo "$parts | $cases | $replaced | $fallback $missing | ${!name} | $quoted | $word ${#word}"
