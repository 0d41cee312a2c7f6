#: what: word counts and a look-up table in associative arrays
#: stdout: the=3 fox=2 dog=1; 4 words; capital of Norway: Oslo; no Spain
set -eu
declare -A count capital=([Norway]=Oslo [Japan]='Tōkyō' ['two words']=yes)
text='the fox saw the dog the fox'

for word in $text; do
    count[$word]=$((${count[$word]:-0} + 1))
done
order=$(for word in "${!count[@]}"; do
    printf '%s %s\n' "${count[$word]}" "$word"
done | sort -k1,1nr -k2,2 | awk '$2 != "saw" { printf "%s%s=%s", sep, $2, $1; sep = " " }')

[[ ${capital['two words']} == yes && ${#capital[@]} -eq 3 ]]
unset 'capital[Japan]'
spain=$([[ -v capital[Spain] ]] && echo Spain || echo "no Spain")
[[ ! -v capital[Japan] ]]
echo "$order; ${#count[@]} words; capital of Norway: ${capital[Norway]}; $spain"
