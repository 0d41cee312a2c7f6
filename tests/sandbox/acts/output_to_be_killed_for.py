#: act: print beyond a limit that ends the run
#: options: --output 100000 --output-action kill --timeout 20s
#: status: output_limit
#: within: 8
while True:
    print("x" * 1000)
