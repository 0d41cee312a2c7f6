"""Run and grade programs in sandboxes of Caisson.

    import caisson
    with caisson.Client.local() as client:
        print(client.run('print(6 * 7)').stdout)
"""

from .async_client import AsyncClient
from .async_sandbox import AsyncContext, AsyncSandbox
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
from .events import Event
from .results import Case, Display, Entry, Grade, OutputFile, Process, Run, StoredFile
from .sandbox import Context, Sandbox
from .tools import Tool

__version__ = '0.1.0'

__all__ = [
    'AsyncClient',
    'AsyncContext',
    'AsyncSandbox',
    'AuthError',
    'CaissonError',
    'Case',
    'Client',
    'Context',
    'Display',
    'EngineError',
    'EngineFault',
    'Entry',
    'Event',
    'Grade',
    'InvalidRequest',
    'NotFound',
    'OutputFile',
    'Process',
    'RateLimited',
    'Run',
    'Sandbox',
    'StoredFile',
    'TimedOut',
    'Tool',
    'Unreachable',
    'configure',
    'default_client',
]
