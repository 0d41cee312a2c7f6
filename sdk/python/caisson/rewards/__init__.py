"""Reward callables for trainers: objects that pickle, and work in spawned and forked processes and in any event loop.

    reward_funcs=[caisson.rewards.trl(column='verification_info', format='primeintellect')]
"""

from ._areal import ArealReward as areal
from ._trl import TrlReward as trl
from ._verifiers import VerifiersReward as verifiers

__all__ = ['areal', 'trl', 'verifiers']
