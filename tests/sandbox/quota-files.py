#: act: open without end
#: status: completed
kept = []
try:
    while True:
        kept.append(open("/dev/null"))
except OSError as e:
    print("contained:", len(kept), e.strerror)
