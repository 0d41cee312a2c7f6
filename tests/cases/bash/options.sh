#: what: a command with getopts: flags, values, a missing value, and what is left over
#: args: -v -o "out file" -n3 first "second one"
#: stdout: verbose 1, output 'out file', count 3, rest 2: first|second one; missing: n; unknown: x
set -u
verbose=0
while getopts ':vo:n:' option; do
    case $option in
    v) verbose=1 ;;
    o) output=$OPTARG ;;
    n) count=$OPTARG ;;
    *) exit 64 ;;
    esac
done
shift $((OPTIND - 1))
rest=$(IFS='|'; echo "$*")

probe() {
    local OPTIND=1 option
    getopts ':n:' option "$@"
    case $option in
    :) echo "missing: $OPTARG" ;;
    '?') echo "unknown: $OPTARG" ;;
    esac
}
[[ $0 == */main.sh ]] || exit 1
echo "verbose $verbose, output '$output', count $count, rest $#: $rest; $(probe -n); $(probe -x)"
