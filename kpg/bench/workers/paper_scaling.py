"""What the papers print about more workers: seconds and rates of K-Pg by number of workers.

    GRAPHS[graph][task]    seconds on 1, 2, 4, 8, 16 and 32 workers (tables 7, 8 and 9)
    TPCH_RATES[query]      tuples a second on 1 and on 32 workers (table 5: scale factor 10, batches of 100,000 rows)

Figure 4c (workers 1 to 16, physical batches of 1M rows) is a picture of the queries of table 5. Of figure 6, the texts
print two latencies under a fixed load (6b), the range in which latencies settle under a growing one (6c), and that the
parts of an arrangement scale linearly to 32 workers (6d).
"""

from __future__ import annotations

STRONG_P99_MS = {1: 500, 8: 6}  # figure 6b, as the later paper prints it (its figure 7b)
PAPER_WORKERS = (1, 2, 4, 8, 16, 32)
PAPER_TASKS = ("index-f", "reach", "sssp", "index-r", "wcc")
GRAPHS: dict[str, dict[str, tuple[float, ...]]] = {
    "livejournal": {
        "index-f": (4.39, 2.49, 1.39, 0.74, 0.54, 0.55),
        "reach": (8.50, 4.33, 2.31, 1.20, 0.62, 0.51),
        "sssp": (13.14, 6.71, 3.58, 1.79, 0.90, 0.59),
        "index-r": (7.56, 4.01, 2.06, 1.03, 0.58, 0.41),
        "wcc": (23.97, 12.95, 6.29, 3.41, 1.71, 0.90),
    },
    "orkut": {
        "index-f": (14.02, 7.92, 4.25, 2.37, 1.43, 1.22),
        "reach": (20.33, 10.29, 5.34, 2.68, 1.47, 1.11),
        "sssp": (24.65, 13.06, 6.21, 3.34, 1.60, 0.87),
        "index-r": (21.27, 11.49, 5.73, 3.03, 1.69, 1.05),
        "wcc": (47.79, 25.02, 12.38, 6.29, 3.30, 1.75),
    },
    "twitter": {
        "index-f": (162.41, 99.74, 49.46, 27.99, 18.04, 12.69),
        "reach": (256.77, 131.50, 64.31, 33.68, 17.40, 11.36),
        "sssp": (310.63, 159.93, 77.27, 40.24, 20.99, 10.97),
        "index-r": (312.31, 164.12, 81.67, 43.20, 24.73, 14.44),
        "wcc": (800.05, 417.20, 200.28, 101.42, 51.83, 27.48),
    },
}
TPCH_RATES: dict[int, tuple[int, int]] = {
    1: (9_341_713, 31_283_993),
    2: (4_388_761, 29_651_632),
    3: (11_049_606, 37_263_673),
    4: (9_046_854, 30_886_269),
    5: (5_802_513, 27_952_246),
    6: (33_090_863, 65_335_474),
    7: (7_551_628, 30_962_626),
    8: (4_949_412, 28_230_062),
    9: (2_932_421, 18_119_469),
    10: (9_708_371, 25_037_510),
    11: (1_720_655, 1_749_464),
    12: (11_258_702, 33_975_983),
    13: (1_446_223, 16_792_703),
    14: (21_908_762, 38_843_085),
    15: (5_057_397, 23_122_916),
    16: (4_435_818, 23_495_608),
    17: (5_218_907, 25_888_103),
    18: (5_854_293, 29_574_347),
    19: (22_696_357, 36_393_109),
    20: (16_089_949, 46_456_453),
    21: (1_968_771, 10_928_516),
    22: (1_843_397, 15_233_935),
}


def paper_gains(graph: str, task: str) -> list[float]:
    """Return how many times faster the paper's system is on each number of workers than on one."""
    seconds = GRAPHS[graph][task]
    return [seconds[0] / each for each in seconds]


def paper_inflations(graph: str, task: str) -> list[float]:
    """Return the core seconds of all workers over those of one: at least the paper's work inflation."""
    return [workers / gain for workers, gain in zip(PAPER_WORKERS, paper_gains(graph, task), strict=True)]


def tpch_gain(query: int) -> float:
    """Return how many times the rate of one worker 32 workers of the paper have."""
    one, most = TPCH_RATES[query]
    return most / one
