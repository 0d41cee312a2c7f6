"""What a daemon takes up: of each of its lasting processes, and of all that is around them."""

import os
import re
from pathlib import Path

from cli import tree


def role(pid):
    """The name of a process that lasts as long as the daemon, or None."""
    words = Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')
    name = Path(f'/proc/{pid}/comm').read_text(encoding='utf-8').strip()
    if name == 'caissond' or name == 'outer-init':
        return name
    if words[0].startswith(b'caisson-'):
        return words[0].decode().removeprefix('caisson-')
    # A child of the outer init that has not ended is a zygote; those it has forked live in a sandbox' pid namespace.
    if len(words) > 1 and words[1].endswith(b'zygote.py') and same_namespace(pid):
        return 'zygote'
    return None


def same_namespace(pid):
    """Whether it is in the pid namespace of its parent, as no program of a sandbox is."""
    status = Path(f'/proc/{pid}/status').read_text(encoding='utf-8')
    parent = re.search(r'^PPid:\s+(\d+)', status, re.M)[1]
    return os.readlink(f'/proc/{pid}/ns/pid') == os.readlink(f'/proc/{parent}/ns/pid')


def memory_kib(pid):
    """Its own part of what is in memory, or all of it where the kernel does not tell."""
    try:
        return int(re.search(r'^Pss:\s+(\d+)', Path(f'/proc/{pid}/smaps_rollup').read_text(encoding='utf-8'), re.M)[1])
    except (OSError, TypeError):
        return int(Path(f'/proc/{pid}/statm').read_text(encoding='utf-8').split()[1]) * os.sysconf('SC_PAGE_SIZE') // 1024


def descriptors(pid, owner):
    """(those of cgroups, those of network namespaces, and all others): of the first two some are kept to be used again."""
    folder, counts = f'/proc/{pid}/fd', [0, 0, 0]
    # On version 1 each cgroup of a supervisor has an event, too, for lack of memory.
    of_cgroups = ('/sys/fs/cgroup/', 'anon_inode:[eventfd]') if owner == 'supervisor' else '/sys/fs/cgroup/'
    for name in os.listdir(folder):
        try:
            link = os.readlink(f'{folder}/{name}')
        except OSError:         # closed meanwhile
            continue
        counts[0 if link.startswith(of_cgroups) else 1 if link.startswith('net:') or '/net/' in link else 2] += 1
    return counts


def rss_kib(pid):
    return int(re.search(r'^VmRSS:\s+(\d+)', Path(f'/proc/{pid}/status').read_text(encoding='utf-8'), re.M)[1])


def cgroups(pid):
    """Folders that a supervisor has made for sandboxes."""
    own = f'caisson-{pid}-'
    return sum(len(folders) for root, folders, _ in os.walk('/sys/fs/cgroup') if own in root)


def look(daemon, state):
    """{what: number}; of a process that is about to end there may be less."""
    pids = tree(daemon)
    found = {'processes': len(pids), 'threads': 0}
    for pid in pids:
        try:
            name = role(pid)
            found['threads'] += len(os.listdir(f'/proc/{pid}/task'))
            if not name:
                continue
            found[f'{name} KiB'] = memory_kib(pid)
            found[f'{name} RSS KiB'] = rss_kib(pid)
            *kept, found[f'{name} descriptors'] = descriptors(pid, name)
            if name == 'supervisor':
                found['cgroup folders'], found['cgroup descriptors'] = cgroups(pid), kept[0]
            if name == 'outer-init':
                found['network namespaces'] = kept[1]
                found['mounts of the outer init'] = len(Path(f'/proc/{pid}/mountinfo').read_text(encoding='utf-8').splitlines())
        except (OSError, TypeError):      # it ended while we looked
            continue
    found['mounts of the host'] = len(Path('/proc/self/mountinfo').read_text(encoding='utf-8').splitlines())
    # What it says on standard error is ours.
    files = [Path(root, name) for root, _, names in os.walk(state) for name in names if name != 'log']
    found['files of the state'] = len(files)
    for kind, suffix in ('database KiB', '.db'), ('log of the database KiB', '.db-wal'):
        found[kind] = sum(size_of(file) for file in files if file.name.endswith(suffix)) // 1024
    return found


def size_of(file):
    try:
        return file.stat().st_size
    except OSError:
        return 0
