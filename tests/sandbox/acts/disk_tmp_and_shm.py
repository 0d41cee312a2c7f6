#: act: fill /tmp and /dev/shm beyond their quota
#: options: --tmp 4MiB
import errno

for folder in ("/tmp", "/dev/shm", "/var/tmp"):
    written = 0
    try:
        with open(f"{folder}/data", "wb", buffering=0) as file:
            while written < 64 << 20:
                written += file.write(bytes(1 << 16))
        print("ESCAPED: wrote", written, "into", folder)
        raise SystemExit(66)
    except OSError as error:
        print("contained:", errno.errorcode[error.errno], written, folder)
