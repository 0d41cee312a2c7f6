"""The Kubernetes side of a gateway as a process: build/tests/unit/kube-pool-serve.

    gateway = KubePool(stub, tmp_path, 'kubernetes.mode=owned', 'pool:lease=500')
    gateway.state()                        # what it knows: pods, workers, log, trouble, wanted, leads ...
    gateway.wait_for(lambda state: ...)    # the first state for which the answer is true
    gateway.say('load w-0 1 0 0')
"""

import json
import select
import subprocess
import time

from cli import BUILD

PROGRAM = BUILD / 'tests/unit/kube-pool-serve'


class KubePool:
    def __init__(self, stub, folder, *words, name='gateway', account=None, mode='owned'):
        self.account = account or stub.service_account(folder / f'account-{name}')
        self.log_path, self.news = folder / f'{name}.log', []
        settings = [f'kubernetes.api_url={stub.url}', f'kubernetes.token_file={self.account}/token', f'kubernetes.mode={mode}',
                    'kubernetes.image=caisson:1', 'kubernetes.pod_prefix=w-', 'gateway.heartbeat=100ms', 'kubernetes.idle=1s',
                    'kubernetes.scale_down_after=1s']
        if stub.ca:
            settings.append(f'kubernetes.ca_file={stub.ca}')
        with open(self.log_path, 'wb') as log:
            self.process = subprocess.Popen([PROGRAM, *settings, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                            env={'PATH': '/usr/bin:/bin', 'HOME': str(folder)})

    def say(self, line):
        """The answer to a command."""
        self.process.stdin.write(line.encode() + b'\n')
        self.process.stdin.flush()
        poll = select.poll()
        poll.register(self.process.stdout, select.POLLIN)
        assert poll.poll(30000), f'no answer to {line}'
        answer = self.process.stdout.readline()
        assert answer, self.log()
        answer = json.loads(answer)
        assert 'wrong' not in answer, answer
        return answer

    def state(self):
        state = self.say('state')
        self.news += state.pop('log').splitlines()
        return state

    def wait_for(self, question, seconds=30):
        end = time.monotonic() + seconds
        while not question(state := self.state()):
            assert time.monotonic() < end, f'not within {seconds} s: {json.dumps(state, indent=1)}\n{self.news}\n{self.log()}'
            time.sleep(0.01)
        return state

    def wait_news(self, line, seconds=30):
        """A line of what the fleet was told."""
        return self.wait_for(lambda _: line in self.news, seconds)

    def log(self):
        return self.log_path.read_text(encoding='utf-8')

    def stop(self):
        """The exit status of a usual end."""
        if self.process.returncode is None:
            self.process.stdin.close()
            try:
                self.process.wait(30)
            finally:
                self.process.kill()
            self.process.stdout.close()
        return self.process.returncode

    def kill(self):
        """An end without a goodbye."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.returncode is None:
            assert self.stop() == 0, self.log()
