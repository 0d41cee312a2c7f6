#: act: print for as long as it runs
#: options: --timeout 3s
#: status: timeout
#: stdout-has: first
#: within: 5
echo first
yes
