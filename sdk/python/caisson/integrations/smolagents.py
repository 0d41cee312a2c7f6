"""smolagents: CodeAgent(executor=CaissonExecutor(additional_imports, logger)).

The code of an agent runs in a context of a sandbox, so variables last from step to step.
"""

from __future__ import annotations

import io
from typing import Any, List, Optional

from smolagents.local_python_executor import CodeOutput
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.utils import AgentError

from ..client import Client
from ..errors import CaissonError
from ..results import Display, Run, plain
from ._common import sync_client


ANSWER = '/tmp/.caisson-answer'
SAVE_ANSWER = f"__import__('pathlib').Path('{ANSWER}').write_text(__import__('sys').last_value.value, 'utf-8')"


class CaissonExecutor(RemotePythonExecutor):
    """`fields` are those of Client.sandbox(), such as profile, limits and network."""

    def __init__(
        self,
        additional_imports: List[str],
        logger: Any,
        allow_pickle: bool = False,
        *,
        client: Optional[Client] = None,
        **fields: Any,
    ) -> None:
        super().__init__(additional_imports, logger, allow_pickle)
        self.sandbox = sync_client(client).sandbox(packages=additional_imports or None, **fields)
        self.context = self.sandbox.context()
        self.installed_packages = list(additional_imports)

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        run = self.context.run(code)
        error = plain(run.error)
        if error.get('type') == self.FINAL_ANSWER_EXCEPTION:
            answer = self._deserialize_final_answer(self._final_answer(), self.allow_pickle)
            return CodeOutput(output=answer, logs=run.stdout, is_final_answer=True)
        if not run.ok:
            trace = '\n'.join(str(line).rstrip('\n') for line in error.get('traceback') or run.why())
            kind = error.get('type') or run.status
            raise AgentError(
                f'{run.stdout}\nExecuting code yielded an error:\n{kind}\n{error.get("message", "")}\n{trace}', self.logger
            )
        return CodeOutput(output=value_of(run), logs=run.stdout, is_final_answer=False)

    def _final_answer(self) -> str:
        """The value of the last exception, by a file: the message in a record is cut."""
        self.context.run(SAVE_ANSWER).raise_for_status()
        return self.sandbox.files.read_text(ANSWER)

    def install_packages(self, additional_imports: List[str]) -> List[str]:
        """Packages of tools; an index of the server, or a network, has to have them."""
        if additional_imports:
            done = self.sandbox.exec(['python3', '-m', 'pip', 'install', *additional_imports])
            if not done.ok:
                raise AgentError(f'packages cannot be installed: {done.stdout}{done.stderr}', self.logger)
            self.logger.log(done.stdout)
        return additional_imports

    def cleanup(self) -> None:
        try:
            self.sandbox.kill()
        except CaissonError as error:
            self.logger.log_error(f'Error during cleanup: {error}')


def value_of(run: Run) -> Any:
    """The value of the last expression; a figure as a picture of PIL."""
    result = plain(run.result)
    picture = next((one for one in (Display(plain(result.get('data'))), *run.displays) if pixels_of(one)), None)
    if picture is None:
        return run.value
    import PIL.Image

    return PIL.Image.open(io.BytesIO(pixels_of(picture)))


def pixels_of(display: Display) -> bytes:
    return display.content('image/png') or display.content('image/jpeg') or b''
