"""Run and grade programs in sandboxes of Caisson.

    import caisson
    with caisson.Client.local() as client:
        print(client.run('print(6 * 7)').stdout)
"""

from .client import Client
from .config import configure, default_client
from .errors import (
    AuthError,
    CaissonError,
    EngineError,
    EngineFault,
    InvalidRequest,
    NotFound,
    RateLimited,
    TimedOut,
    Unreachable,
)
from .results import Case, Grade, Run

__version__ = '0.1.0'

__all__ = [
    'AuthError',
    'CaissonError',
    'Case',
    'Client',
    'EngineError',
    'EngineFault',
    'Grade',
    'InvalidRequest',
    'NotFound',
    'RateLimited',
    'Run',
    'TimedOut',
    'Unreachable',
    'configure',
    'default_client',
]
