#: act: make folders until no more fit
#: status: disk_exceeded
#: within: 15
import os

for number in range(1_000_000):
    os.mkdir(f"folder-{number}")
