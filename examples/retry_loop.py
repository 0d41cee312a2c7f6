#!/usr/bin/env python3
"""A loop that lets a model try again, with the feedback of a grading.

Caisson keeps no state of such a loop: each grading has the feedback that the next try needs.  The loop ends when all cases
have passed, when there is no feedback, when the model repeats its code, or when the model fails.

    caisson serve &                                       # on 127.0.0.1:8080
    python3 examples/retry_loop.py task.json ./generate

task.json is a request of POST /v1/grade without `code`.  ./generate is a program: it reads {"task", "code", "feedback"} as JSON
from standard input, and writes the next code, with Markdown around it or without.  CAISSON_URL and CAISSON_KEY name another
server and its key.
"""

import json
import os
import subprocess
import sys
import urllib.request

URL = os.environ.get('CAISSON_URL', 'http://127.0.0.1:8080')
MAX_TRIES = 3


def grade(task, code):
    """The result of one grading."""
    headers = {'Content-Type': 'application/json'}
    if os.environ.get('CAISSON_KEY'):
        headers['Authorization'] = f'Bearer {os.environ["CAISSON_KEY"]}'
    body = json.dumps({**task, 'code': code, 'extract': 'last_fence'}).encode()
    request = urllib.request.Request(f'{URL}/v1/grade', body, headers)
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)


def execute_code(task, generate, code=None, max_tries=MAX_TRIES):
    """Grade code until it passes.  generate(code, feedback) returns the next code, or None.  Returns (result, code, why it ended)."""
    feedback = []
    result = None
    for _ in range(max_tries):
        if code is None or result is not None:
            following = generate(code, feedback)
            if following is None:
                return result, code, 'the model failed'
            if following == code:
                return result, code, 'the model repeated its code'
            code = following
        result = grade(task, code)
        feedback = result['feedback']
        if result['all_passed']:
            return result, code, 'all cases passed'
        if not feedback:
            return result, code, 'there is no feedback'
    return result, code, 'all tries are used up'


def program(command, task):
    """A generate() that runs a program."""
    def generate(code, feedback):
        question = json.dumps({'task': task, 'code': code, 'feedback': feedback})
        done = subprocess.run(command, input=question, stdout=subprocess.PIPE, text=True, timeout=600, check=False)
        return done.stdout if done.returncode == 0 and done.stdout.strip() else None
    return generate


def main():
    if len(sys.argv) < 3:
        sys.exit(f'usage: {sys.argv[0]} TASK.json PROGRAM [ARGUMENT]...')
    with open(sys.argv[1], encoding='utf-8') as file:
        task = json.load(file)
    result, code, why = execute_code(task, program(sys.argv[2:], task))
    print(code or '')
    print(f'{why}: score {result["score"] if result else 0:.2f}', file=sys.stderr)
    return 0 if result and result['all_passed'] else 1


if __name__ == '__main__':
    sys.exit(main())
