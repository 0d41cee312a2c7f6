#: act: use more memory than allowed: anonymous
#: status: memory_exceeded disk_exceeded failed completed
#: options: --memory 96MiB --timeout 20s
#: peak: 100663296
x = [bytearray(16 << 20) for _ in range(100)]
