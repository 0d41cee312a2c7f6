#: act: use more memory than allowed: tmp
#: status: memory_exceeded disk_exceeded failed completed
#: options: --memory 96MiB --timeout 20s
#: peak: 100663296
with open("/tmp/x", "wb") as f:
    for _ in range(200):
        f.write(bytes(1 << 20))
