"""API keys of a state folder, made by the command line as an administrator does."""

from cli import caisson


class Keys:
    def __init__(self, folder):
        self.folder = folder

    def make(self, name, *options):
        done = caisson('keys', 'create', '--name', name, '--set', f'engine.state_dir={self.folder}', *options)
        assert done.status == 0, done.err
        return done.out.strip()

    def ask(self, *words):
        return caisson(*words, '--set', f'engine.state_dir={self.folder}')


def bearer(key):
    return {'Authorization': f'Bearer {key}'}
