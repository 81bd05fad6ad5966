"""Units: what people write, exactly, and never a guess between bits and bytes."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import units
from experiments.errors import UserError


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("50", 50_000_000),
        ("50M", 50_000_000),
        ("56G", 56_000_000_000),
        ("2.5Gbit", 2_500_000_000),
        ("100mbit", 100_000_000),
        ("100 Mbit/s", 100_000_000),
        ("100Mbps", 100_000_000),
        ("9600bit/s", 9600),
        ("0.5", 500_000),
        ("1.6T", 1_600_000_000_000),
    ],
)
def test_rates(text: str, bps: int) -> None:
    assert units.parse_rate(text) == bps


@pytest.mark.parametrize(
    "text", ["0", "0M", "0.0Gbit", "-5M", "fast", "", "50MB/s", "50MBps", "5Mibit", "1e9", "0.3bit"]
)
def test_what_is_no_rate_is_refused_with_its_value(text: str) -> None:
    with pytest.raises(UserError) as caught:
        units.parse_rate(text, "--bw")
    assert "--bw" in str(caught.value)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("4096B", 4096),
        ("64KiB", 65536),
        ("64kib", 65536),
        ("64K", 65536),
        ("1MiB", 1048576),
        ("1.5MiB", 1572864),
        ("1GiB", 2**30),
        ("1KB", 1000),
        ("1MB", 1_000_000),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert units.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "1Mbit", "1Mb", "64 KiBs", "0.3KiB", "iB", "5iB", "big"])
def test_what_is_no_size_is_refused_with_its_value(text: str) -> None:
    with pytest.raises(UserError) as caught:
        units.parse_size(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(("text", "share"), [("1%", 0.01), ("0", 0.0), ("0%", 0.0), ("0.5 %", 0.005), ("100%", 1.0)])
def test_probabilities(text: str, share: float) -> None:
    assert units.parse_probability(text) == share


@pytest.mark.parametrize("text", ["1", "0.01", "101%", "-1%", "%", "one"])
def test_a_probability_without_its_percent_sign_or_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(UserError) as caught:
        units.parse_probability(text, "--loss")
    assert "--loss" in str(caught.value)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "ns"), [("5ms", 5_000_000), ("3s", 3 * 10**9), ("0", 0), ("0.1us", 100), ("2 min", 120 * 10**9)]
)
def test_times(text: str, ns: int) -> None:
    assert units.parse_time(text) == ns


@pytest.mark.parametrize("text", ["5", "5 hours", "-5ms", "0.5ns", "ms"])
def test_a_time_without_its_unit_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"unit|whole"):
        units.parse_time(text)


@given(st.integers(min_value=1, max_value=10**16))
def test_a_written_rate_reads_back(bps: int) -> None:
    assert units.parse_rate(units.format_rate(bps)) == bps


@given(st.integers(min_value=0, max_value=2**60))
def test_a_written_size_reads_back(size: int) -> None:
    assert units.parse_size(units.format_size(size)) == size


@given(st.integers(min_value=0, max_value=10**18))
def test_a_written_time_reads_back(ns: int) -> None:
    assert units.parse_time(units.format_time(ns)) == ns


@given(st.floats(min_value=0, max_value=1))
def test_a_written_probability_reads_back(share: float) -> None:
    assert units.parse_probability(units.format_probability(share)) == share


@given(st.decimals(min_value="0.001", max_value=10**6, places=3), st.sampled_from("KMG"))
def test_prefixes_scale_exactly(number: object, prefix: str) -> None:
    expected = Fraction(str(number)) * units.DECIMAL[prefix.lower()]
    assert units.parse_rate(f"{number}{prefix}bit") == expected


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    for parse in (units.parse_rate, units.parse_size, units.parse_probability, units.parse_time):
        try:
            value = parse(text)
        except UserError as error:
            complaint = str(error)
        else:
            complaint = ""
            assert value >= 0
        assert "\n" not in complaint


def test_formats_are_the_ones_people_know() -> None:
    assert units.format_rate(50_000_000) == "50 Mbit/s"
    assert units.format_rate(56_000_000_000) == "56 Gbit/s"
    assert units.format_size(1 << 20) == "1 MiB"
    assert units.format_size(0) == "0 B"
    assert units.format_time(5_000_000) == "5 ms"
    assert units.format_probability(0.015) == "1.5%"
    assert units.format_probability(1.0) == "100%"
