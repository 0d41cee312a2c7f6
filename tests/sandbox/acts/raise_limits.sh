#: act: raise limits with ulimit, and take those of the child for one's own
set -u
for letter in c n u f l q i s t r e; do
    hard=$(ulimit -H -"$letter")
    [[ $hard != unlimited ]] || { echo "ESCAPED: $letter has no limit"; exit 66; }
    if ulimit -H -"$letter" $((hard + 1)) 2>/dev/null || bash -c "ulimit -$letter unlimited" 2>/dev/null; then
        echo "ESCAPED: $letter was raised from $hard"
        exit 66
    fi
    echo "contained: $letter stays $hard"
done
