from __future__ import annotations

from dataclasses import replace

from normbench.cli.surroundings import differences
from tests.runs import make_device, make_environment, make_header, make_info, make_plan

HEADER = make_header()


def test_what_is_as_it_was_has_no_differences() -> None:
    assert differences(HEADER, make_header(created_utc="2027-01-01T00:00:00Z", command=("normbench",))) == ()


def test_everything_that_differs_is_said_and_absent_values_are_too() -> None:
    before = make_header(
        device=make_device(threads=2, cache_bytes=None), environment=make_environment(torch="2.12.0", triton="3.1")
    )
    now = make_header(
        device=make_device(name="Other CPU", slug="other-cpu", threads=4, cache_bytes=2**20),
        environment=make_environment(torch="2.13.0"),
    )

    assert differences(before, now) == (
        "device was Some CPU, is Other CPU",
        "threads was 2, is 4",
        "torch was 2.12.0, is 2.13.0",
        "triton was 3.1, is -",
        "cache_bytes was -, is 1048576",
    )


def test_a_package_is_named_and_not_all_of_them() -> None:
    before = make_header(environment=make_environment(packages=(("numpy", "2.3"), ("apache-tvm-ffi", "0.1"))))
    now = make_header(environment=make_environment(packages=(("numpy", "2.4"), ("quack", "1"))))

    assert differences(before, now) == ("numpy was 2.3, is 2.4", "apache-tvm-ffi was 0.1, is -", "quack was -, is 1")


def test_false_is_a_value_and_differs_from_nothing_known() -> None:
    before, now = make_header(device=make_device(fused_rmsnorm=False)), make_header()

    assert differences(before, now) == ("fused_rmsnorm was False, is -",)


def test_several_values_of_one_thing_are_one_difference() -> None:
    before, now = (
        make_header(device=make_device(capability=(9, 0))),
        make_header(device=make_device(capability=(8, 6))),
    )

    assert differences(before, now) == ("capability was 9 0, is 8 6",)


def test_an_implementation_that_has_become_another_is_a_difference() -> None:
    infos = tuple(make_info(name) for name in make_plan().implementations)
    now = make_header(implementations=(*infos[:-1], replace(infos[-1], compiled=True)))

    assert differences(HEADER, now) == ("nn-rmsnorm was rmsnorm, is rmsnorm, compiled",)
