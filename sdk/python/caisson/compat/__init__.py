"""Functions with the signatures of other graders: a changed import is the whole change.

Their gradings cannot be forged by the submission, need no process of the caller's for each submission, and never
report a fault of the engine as a wrong answer: see caisson.configure().
"""
