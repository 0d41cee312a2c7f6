# shellcheck shell=bash
# What run.sh and worker.sh share: sending frames, and the syntax check of the program.
#
# The caller says which descriptor is the channel ($channel) and which file is the program ($main).  There are no other
# variables outside of functions: they could have the name of one of the program's.
#
# shellcheck disable=SC2154    # $channel and $main

# send TYPE [JSON]
send() {
        local LC_ALL=C
        local -A kinds=([HELLO]=1 [SYNTAX]=2 [STARTED]=3 [ERROR]=4)
        local payload=${2-} header
        # A byte 10 in the header's length would be such a newline; JSON may end in spaces.
        while (( ${#payload} % 256 == 10 || ${#payload} / 256 == 10 )); do
                payload+=' '
        done
        printf -v header 'CSN1\\x%02x\\0\\0\\0\\x%02x\\x%02x\\0\\0' "${kinds[$1]}" \
                $(( ${#payload} % 256 )) $(( ${#payload} / 256 ))
        # If nobody reads the channel any more, the run goes on without it.
        trap '' PIPE
        printf "$header%s" "$payload" >&"$channel"
        trap - PIPE
} 2>/dev/null

# json_string TEXT BYTES_MAX: sets REPLY to TEXT as a JSON string of at most BYTES_MAX bytes, and valid UTF-8.
json_string() {
        local LC_ALL=C
        local text=$1 max=$2 rest piece code low high more i
        REPLY=
        for (( i = 0; i < ${#text} && ${#REPLY} < max - 8; i++ )); do
                piece=${text:i:1}
                printf -v code '%d' "'$piece"
                (( code &= 255 ))
                # The second byte's range depends on the first, the others are 128..191: RFC 3629, section 4.
                low=128 high=191 more=0
                case $code in
                (34|92)         piece=\\$piece ;;
                (9)             piece='\t' ;;
                (10)            piece='\n' ;;
                (13)            piece='\r' ;;
                (?|[12]?|3[01]) printf -v piece '\\u%04x' "$code" ;;
                (19[4-9]|20?|21?|22[0-3]) more=1 ;;
                (22[4-9]|23?)   more=2 ;;
                (24[0-4])       more=3 ;;
                (12[89]|1[3-9]?|2*) piece='\ufffd' ;;
                esac
                case $code in
                (224) low=160 ;;
                (237) high=159 ;;
                (240) low=144 ;;
                (244) high=143 ;;
                esac
                while (( more-- > 0 )); do
                        rest=${text:i+1:1}
                        printf -v code '%d' "'$rest"
                        (( code &= 255 ))
                        if [[ -z $rest ]] || (( code < low || code > high )); then
                                piece='\ufffd'
                                break
                        fi
                        piece+=$rest
                        low=128 high=191
                        (( i++ ))
                done
                REPLY+=$piece
        done
        REPLY="\"$REPLY\""
}

# report_syntax MESSAGE: sends what `bash -n` said of $main.
report_syntax() {
        # One frame must be one write(2), and Bash writes at every newline and when 4096 bytes have come together.
        local text_max=$(( 4000 / 2 - 100 ))
        local message=${1%%$'\n'*} line=null text=null lines
        message=${message#"$main: "}
        if [[ $message =~ ^[^0-9:]*([0-9]+):\ (.*)$ ]]; then
                line=${BASH_REMATCH[1]}
                message=${BASH_REMATCH[2]}
                mapfile -t -s $(( line - 1 )) -n 1 lines < "$main"
                if [[ ${lines+set} ]]; then
                        json_string "${lines[0]}" "$text_max"
                        text=$REPLY
                fi
        fi
        json_string "$message" "$text_max"
        send SYNTAX "{\"type\":\"SyntaxError\",\"message\":$REPLY,\"line\":$line,\"column\":null,\"text\":$text}"
}

# check_syntax: reports a mistake in $main and ends with Bash's status for one.
#
# Scripts that say `shopt -s extglob` are read by a shell that has not executed it, hence the second try.  Other errors,
# as of a file that cannot be read, are for the program's own shell to complain about.
check_syntax() {
        local message
        # An image may lack the locale of LANG; Bash tells of that when the variable gets its value back.
        { message=$(LC_MESSAGES=C "$BASH" -n -- "$main" 2>&1 {channel}>&-); } 2>/dev/null
        if (( $? == 2 )) && ! "$BASH" -O extglob -n -- "$main" 2>/dev/null {channel}>&-; then
                printf '%s\n' "$message" >&2
                report_syntax "$message"
                exit 2
        fi
}

# check_prelude: reports a mistake in the text of $prelude and ends.
check_prelude() {
        local message line=null
        { message=$(LC_MESSAGES=C "$BASH" -O extglob -n -- "$prelude" 2>&1 {channel}>&-); } 2>/dev/null
        (( $? == 2 )) || return 0
        printf '%s\n' "$message" >&2
        message=${message%%$'\n'*}
        message=${message#"$prelude: "}
        if [[ $message =~ ^[^0-9:]*([0-9]+):\ (.*)$ ]]; then
                line=${BASH_REMATCH[1]}
                message=${BASH_REMATCH[2]}
        fi
        report_prelude SyntaxError "$message" "$line"
        exit 1
}

# report_prelude TYPE MESSAGE LINE: the prelude failed, and the program does not run.
report_prelude() {
        json_string "$2" 1900
        send ERROR "{\"type\":\"$1\",\"message\":$REPLY,\"line\":$3,\"column\":null,\"prelude\":true}"
}

say_hello() {
        send HELLO "{\"runner\":\"bash\",\"version\":\"${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}\"}"
}
