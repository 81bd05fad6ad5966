"""What follows from what a machine has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from topo.platform import FEATURES, MODULES, PROGRAMS, Facts, choose

EVERYTHING = Facts(
    root=True,
    programs=frozenset(need.name for need in PROGRAMS),
    modules=frozenset(need.name for need in MODULES),
    features=dict.fromkeys(FEATURES, True),
    versions={"kernel": "6.1.0-18-amd64"},
)


def test_the_better_mechanism_is_taken_where_it_is_there() -> None:
    platform = choose(EVERYTHING)
    assert (platform.datapath, platform.datapath_type, platform.delay) == ("kernel", "system", "netem")
    assert platform.missing == ()


def test_without_the_kernels_parts_userspace_serves_and_they_are_named() -> None:
    platform = choose(replace(EVERYTHING, features={**EVERYTHING.features, "openvswitch": False, "netem": False}))
    assert (platform.datapath, platform.datapath_type, platform.delay) == ("user", "netdev", None)
    assert [m.what for m in platform.missing] == ["kernel feature openvswitch", "kernel feature netem"]
    assert platform.blockers == ()


@pytest.mark.parametrize("feature", ["veth", "htb"])
def test_without_links_or_rates_nothing_starts(feature: str) -> None:
    platform = choose(replace(EVERYTHING, features={**EVERYTHING.features, feature: False}))
    assert [m.what for m in platform.blockers] == [f"kernel feature {feature}"]


def test_what_was_not_tried_is_neither_used_nor_called_missing() -> None:
    platform = choose(replace(EVERYTHING, root=False, features=dict.fromkeys(FEATURES), untried=("needs root",)))
    assert (platform.datapath, platform.delay, platform.missing) == ("user", None, ())
    assert platform.untried == ("needs root",)


@pytest.mark.parametrize("need", PROGRAMS, ids=lambda need: need.name)
def test_a_missing_program_is_one_entry_with_its_package(need) -> None:
    platform = choose(replace(EVERYTHING, programs=EVERYTHING.programs - {need.name}))
    assert [(m.what, m.package, m.required) for m in platform.missing] == [(need.name, need.package, need.required)]
    assert need.package in str(platform.missing[0])


def test_a_missing_module_is_named_too() -> None:
    platform = choose(replace(EVERYTHING, modules=EVERYTHING.modules - {"ryu"}))
    assert [str(m) for m in platform.blockers] == ["ryu (the controller): missing, comes with .venv (make setup)"]


@pytest.mark.parametrize(
    ("release", "package"),
    [
        ("6.8.0-45-generic", "linux-modules-extra-6.8.0-45-generic"),
        ("6.8.0-1015-aws", "linux-modules-extra-6.8.0-1015-aws"),
        ("6.1.0-18-amd64", "a stock kernel (Debian: linux-image-amd64)"),
    ],
)
def test_a_kernels_missing_feature_has_the_package_of_that_kernel(release: str, package: str) -> None:
    facts = replace(EVERYTHING, features={**EVERYTHING.features, "netem": False}, versions={"kernel": release})
    assert choose(facts).missing[0].package == package
