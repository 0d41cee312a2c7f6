#: act: take more memory than allowed, in one block
#: options: --memory 64MiB
#: status: memory_exceeded
#: host-check: memory_at_most 64
#: vm: yes
block = bytearray(512 << 20)
print("ESCAPED:", len(block))
