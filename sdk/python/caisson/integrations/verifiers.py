"""verifiers v1: a runtime for Agent.run(runtime=...).  Rewards by a function are in caisson.rewards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, List, Optional

from verifiers.v1.runtimes.base import BaseRuntimeInfo, ProgramResult, Runtime

from ..async_client import AsyncClient
from ..async_sandbox import AsyncSandbox
from ..client import Client
from ..errors import CaissonError, InvalidRequest
from ._common import NOT_FOUND, async_client, exit_code_of, is_not_started


class CaissonRuntime(Runtime):
    """`fields` are those of Client.sandbox(), such as image, profile, limits and ttl."""

    is_local = False

    def __init__(self, name: Optional[str] = None, *, client: Optional[AsyncClient] = None, **fields: Any) -> None:
        super().__init__(name)
        self.config = SimpleNamespace(type='caisson')
        self.info = BaseRuntimeInfo()
        self.client = client
        self.fields = fields
        self.sandbox: Optional[AsyncSandbox] = None

    async def start(self) -> None:
        self.sandbox = await async_client(self.client).sandbox(labels={'name': self.name[:200]}, **self.fields)
        self.info.id = self.sandbox.id

    def cleanup(self) -> None:
        """End the sandbox; also without an event loop, at the end of the process."""
        sandbox, self.sandbox = self.sandbox, None
        if sandbox:
            try:
                Client(str(sandbox.client.address), sandbox.client.key).sandboxes.get(sandbox.id).kill()
            except CaissonError:
                return

    def _started(self) -> AsyncSandbox:
        if not self.sandbox:
            raise RuntimeError('the runtime is not started, or was stopped')
        return self.sandbox

    async def run(self, argv: List[str], env: Dict[str, str]) -> ProgramResult:
        try:
            done = await self._started().exec(argv, env=self.process_env(env) or None)
        except InvalidRequest as error:
            if is_not_started(error):
                return ProgramResult(exit_code=NOT_FOUND, stdout='', stderr=error.message)
            raise
        return ProgramResult(exit_code=exit_code_of(done), stdout=done.stdout, stderr=done.stderr)

    async def _read(self, path: str) -> bytes:
        return await self._started().files.read(path)

    async def write(self, path: str, data: bytes) -> None:
        await self._started().files.write(path, data)
