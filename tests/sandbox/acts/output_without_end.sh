#: act: print for as long as it runs
#: options: --timeout 1s
#: status: timeout
#: stdout-has: first
#: within: 5
echo first
yes
