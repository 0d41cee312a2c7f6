#: what: extended globs, regular expressions, case with fall-through, brace expansion and mapfile
#: stdout: txt 2, not txt 1, year 2024 month 05, cat animal living, a1 a2 b1 b2, third c
shopt -s extglob nullglob globstar
set -u
cd "$(mktemp -d)" || exit 1
mkdir -p deep/er
touch one.txt two.txt three.md deep/er/four.txt

texts=(*.txt)
others=(!(*.txt|deep))
all=(**/*.txt)
none=(*.none)
[[ ${#all[@]} -eq 3 && ${#none[@]} -eq 0 ]] || exit 1

[[ 'report-2024-05.pdf' =~ ([0-9]{4})-([0-9]{2}) ]]
year=${BASH_REMATCH[1]} month=${BASH_REMATCH[2]}

kinds=
case cat in
cat) kinds+='cat ' ;&
dog) kinds+='animal ' ;;&
c*) kinds+='living' ;;
*) kinds+='never' ;;
esac

mapfile -t -s 2 -n 1 third < <(printf '%s\n' a b c d)
trimmed='   padded   '
trimmed=${trimmed##+([[:space:]])}
trimmed=${trimmed%%+([[:space:]])}
[[ $trimmed == padded && abc == @(abc|def) && foo.tar.gz == *.tar.@(gz|xz) ]] || exit 1
echo "txt ${#texts[@]}, not txt ${#others[@]}, year $year month $month, $kinds, $(echo {a,b}{1..2}), third ${third[0]}"
