#!/usr/bin/python3
"""Records the exchanges of tests/data/kubernetes with a kube-apiserver again and compares them with the transcript.

    apiserver.py PROGRAMS [OUT.jsonl]

PROGRAMS is the folder that `apiserver build` prints.  With OUT.jsonl the recording
is kept and not compared.  The program prints each difference, and ends with 1 if there is one.
"""

import json
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / 'lib'), str(TESTS / 'data/kubernetes')]

from kube_server import KubeServer                # noqa: E402  (the path is set above)
from record import Recorder, essence, read       # noqa: E402


def main():
    found = []
    with tempfile.TemporaryDirectory(prefix='apiserver-') as folder:
        with KubeServer(sys.argv[1], folder) as server:
            Recorder(server.connect, server.token, found.append).all()
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(''.join(json.dumps(exchange) + '\n' for exchange in found), encoding='utf-8')
        return 0
    recorded = read(TESTS / 'data/kubernetes/transcript.jsonl')
    differences = [exchange['name'] for exchange, before in zip(found, recorded)
                   if essence(exchange) != essence(before)]
    print(f'{len(found)} exchanges, {len(recorded)} in the transcript, {len(differences)} differ', *differences,
          sep='\n')
    return 1 if differences or len(found) != len(recorded) else 0


if __name__ == '__main__':
    sys.exit(main())
