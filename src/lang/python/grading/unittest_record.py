"""Classes of unittest, run by unittest itself; suite.py loads this file where test code has any."""

import unittest

Trial = load_part('suite')['Trial']


def run_test_case(suite, cls):
    unittest.TestLoader().loadTestsFromTestCase(cls).run(Record(suite))


class Record(unittest.TestResult):
    """Tells each test of a TestCase when it is over."""

    def __init__(self, suite):
        super().__init__()
        self.suite, self.trial = suite, None

    def startTest(self, test):
        super().startTest(test)
        name = test.id()
        method = getattr(type(test), test._testMethodName)
        self.line = getattr(getattr(method, '__code__', None), 'co_firstlineno', None)
        self.outcome, self.where = ('passed', ''), None
        self.trial = Trial(self.suite, name.partition('.')[2], self.line)
        self.trial.__enter__()

    def stopTest(self, test):
        super().stopTest(test)
        trial, self.trial = self.trial, None
        trial.__exit__()
        trial.tell(*self.outcome, self.where)

    def note(self, test, error):
        where = self.suite.line_of(error)
        outcome = self.suite.judge(error, where)
        if self.trial is None:          # setUpClass and its like
            self.suite.tell(str(test), *outcome, where)
        elif self.outcome[0] in ('passed', 'skipped'):
            self.outcome, self.where = outcome, where

    def addError(self, test, error):
        self.note(test, error[1])

    def addFailure(self, test, error):
        self.note(test, error[1])

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.note(test, error[1])

    def addSkip(self, test, reason):
        if self.trial is None:
            self.suite.tell(str(test), 'skipped', reason, None)
        elif self.outcome[0] == 'passed':
            self.outcome = 'skipped', reason

    def addExpectedFailure(self, test, error):
        pass

    def addUnexpectedSuccess(self, test):
        self.outcome = 'failed', 'it passed, and is marked expectedFailure'
