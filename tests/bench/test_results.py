"""Saved results and their latency curves."""

import json

import pytest

from kpg.bench.results import Result, curve, read
from kpg.errors import Corrupt


def test_a_file_that_is_not_a_result_is_named(tmp_path):
    (tmp_path / "X16.json").write_text(json.dumps({"id": "X16"}))
    with pytest.raises(Corrupt, match="X16.json"):
        read(tmp_path / "X16.json")


@pytest.mark.parametrize("count", [1, 7, 4_000, 4_001, 100_000])
def test_each_point_of_a_curve_has_the_share_of_all_latencies_at_least_as_long(count):
    kept = curve([float(number) for number in reversed(range(count))])
    assert len(kept) == min(count, 4_000) and kept[0] == (0.0, 1.0)
    assert [ms for ms, _ in kept[-1_000:]] == [float(number) for number in range(max(0, count - 1_000), count)]
    assert all(share == pytest.approx((count - ms) / count) for ms, share in kept)


def test_a_result_is_partial_until_the_run_ends():
    assert Result("X1", "t", 1.0, 0, "now", {}).status == "partial"
