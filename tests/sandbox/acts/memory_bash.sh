#: act: let a variable of the shell grow without end
#: options: --memory 64MiB
#: status: memory_exceeded
text=0123456789abcdef
while true; do
    text=$text$text
done
