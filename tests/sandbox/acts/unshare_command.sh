#: act: make and enter namespaces with the commands that distributions ship
#: needs: unshare nsenter
set -u
for flags in -U -Ur -m -n -p -i -u -C '-Urm --map-root-user' '-Ur --mount-proc --fork --pid'; do
    # shellcheck disable=SC2086
    if answer=$(unshare $flags true 2>&1); then
        echo "ESCAPED: unshare $flags"
        exit 66
    fi
    echo "contained: ${answer##*: } $flags"
done
for flags in '-t 1 -m' '-t 1 -a' '-t 1 -n'; do
    # shellcheck disable=SC2086
    if answer=$(nsenter $flags true 2>&1); then
        echo "ESCAPED: nsenter $flags"
        exit 66
    fi
    echo "contained: ${answer##*: } $flags"
done
