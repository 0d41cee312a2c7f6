#: what: graph search, dynamic programming, heaps, bisection, deep recursion and memoisation
#: stdout: path A-C-D-F 9, lcs 4, knapsack 22, depth 5000, ways 573147844013817084101
import bisect
import functools
import heapq
import itertools
import sys

GRAPH = {"A": {"B": 7, "C": 3}, "B": {"F": 5}, "C": {"B": 6, "D": 2}, "D": {"F": 4}, "F": {}}


def shortest(start, goal):
    heap, seen = [(0, start, (start,))], set()
    while heap:
        cost, node, path = heapq.heappop(heap)
        if node == goal:
            return "-".join(path), cost
        if node not in seen:
            seen.add(node)
            for other, length in GRAPH[node].items():
                heapq.heappush(heap, (cost + length, other, (*path, other)))
    return None


def common(a, b):
    row = [0] * (len(b) + 1)
    for x in a:
        above = row[:]
        for j, y in enumerate(b, 1):
            row[j] = above[j - 1] + 1 if x == y else max(row[j - 1], above[j])
    return row[-1]


def knapsack(items, room):
    return max(sum(value for _, value in chosen) for size in range(len(items) + 1)
               for chosen in itertools.combinations(items, size) if sum(weight for weight, _ in chosen) <= room)


def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)


@functools.cache
def ways(n):
    return 1 if n < 2 else ways(n - 1) + ways(n - 2)


assert bisect.bisect_left([1, 3, 3, 7], 3) == 1 and list(heapq.merge([1, 4], [2, 3])) == [1, 2, 3, 4]
sys.setrecursionlimit(10_000)
path, cost = shortest("A", "F")
print(f"path {path} {cost}, lcs {common('AGGTAB', 'GXTXAYB')}, knapsack {knapsack([(1, 6), (2, 10), (3, 12)], 5)},",
      f"depth {depth(5000)}, ways {ways(100)}")
