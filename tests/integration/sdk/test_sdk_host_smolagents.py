"""caisson.integrations.smolagents beside a stand-in of its host.

Repository: huggingface/smolagents, commit e3a5b899 (1.27.0.dev0).  Files: src/smolagents/remote_executors.py (RemotePythonExecutor: the abstract
run_code_raise_errors, __init__, install_packages, _deserialize_final_answer), src/smolagents/local_python_executor.py (CodeOutput), src/smolagents/utils.py
(AgentError).
"""

import dataclasses
import json
from typing import Any

import pytest

from hosts import check, shape, stand_in

SIGNATURES = {'run_code_raise_errors': '(self, code)', 'install_packages': '(self, additional_imports)', 'cleanup': '(self)'}
INIT = '(self, additional_imports, logger, allow_pickle=False'       # of E2BExecutor; ours has keywords behind


@dataclasses.dataclass
class CodeOutput:
    output: Any
    logs: str
    is_final_answer: bool


class AgentError(Exception):
    def __init__(self, message, logger):
        super().__init__(message)
        logger.errors.append(message)


class Logger:
    def __init__(self):
        self.lines, self.errors = [], []

    def log(self, text, level=None):
        self.lines.append((text, level))

    def log_error(self, text):
        self.errors.append(text)


class RemotePythonExecutor:
    FINAL_ANSWER_EXCEPTION = 'FinalAnswerException'

    def __init__(self, additional_imports, logger, allow_pickle=False):
        self.additional_imports, self.logger, self.allow_pickle = additional_imports, logger, allow_pickle

    def __call__(self, code_action):
        return self.run_code_raise_errors(code_action)

    @staticmethod
    def _deserialize_final_answer(encoded_value, allow_pickle=False):
        assert encoded_value.startswith('safe:') and not allow_pickle
        return json.loads(encoded_value[5:])


@pytest.fixture(name='executor')
def executor_beside_the_host(monkeypatch, client):
    module = stand_in(monkeypatch, 'smolagents', smolagents__local_python_executor={'CodeOutput': CodeOutput},
                      smolagents__remote_executors={'RemotePythonExecutor': RemotePythonExecutor}, smolagents__utils={'AgentError': AgentError})
    check(module.CaissonExecutor, SIGNATURES)
    assert shape(module.CaissonExecutor.__init__).startswith(INIT)
    executor = module.CaissonExecutor([], Logger(), client=client, image='data')
    yield executor
    executor.cleanup()
    executor.cleanup()
    assert list(client.sandboxes.list()) == [] and not [one for one in executor.logger.errors if 'cleanup' in one]


def test_variables_last_and_output_is_the_log(executor):
    assert executor('x = 41\nprint("é")') == CodeOutput(None, 'é\n', False)
    assert executor('x + 1') == CodeOutput(42, '', False)


def test_a_final_answer_is_an_exception(executor):
    code = 'class FinalAnswerException(BaseException):\n    def __init__(self, value):\n        self.value = value\n'
    long = 'x' * 100_000
    output = executor(f'{code}print("log")\nraise FinalAnswerException("safe:" + {json.dumps(json.dumps({"a": [1, long]}))})')
    assert output.is_final_answer and output.output == {'a': [1, long]} and output.logs == 'log\n'


def test_an_error_of_the_code_is_an_error_of_the_agent(executor):
    with pytest.raises(AgentError) as caught:
        executor('print("before")\n1 / 0')
    assert 'before' in str(caught.value) and 'ZeroDivisionError\ndivision by zero' in str(caught.value) and 'Traceback' in str(caught.value)
    with pytest.raises(AgentError):
        executor('def')


def test_a_figure_is_a_picture(executor):
    output = executor('import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()').output
    assert output.size[0] > 10 and output.format == 'PNG'


def test_packages_that_no_index_has_are_an_error(executor):
    assert executor.install_packages([]) == []
    with pytest.raises(AgentError):
        executor.install_packages(['nonesuch-package'])
