from __future__ import annotations

import getpass
import os
import socket
import tempfile
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import psutil
import pytest

from normbench import private
from normbench.failures import describe
from normbench.private import scrubbed


@pytest.fixture(autouse=True)
def somebodys_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine of which everything is known; its home and folders have blanks."""
    home = tmp_path / "Ann Example" / "ann"
    (home / "my work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "my work")
    monkeypatch.setattr(socket, "gethostname", lambda: "workstation7.lab.example")
    monkeypatch.setattr(getpass, "getuser", lambda: "aexample")
    addresses = [SimpleNamespace(address=a) for a in ("127.0.0.1", "203.0.113.9", "fe80::1c2d:3e4f%eth0", "::1")]
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: {"eth0": addresses})
    private._addresses.cache_clear()
    return home


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no /home/ann/kernels/k.cu", "no …/k.cu"),
        ("no kernel in /home/ann", "no kernel in ~"),
        ("no '/data/two words/k.cu' here", "no '…/k.cu' here"),
        (r"no C:\Users\Ann Example\x\k.cu", "no …/k.cu"),
        (r"no 'C:\\Users\\Ann Example\\x\\k.cu'", "no '…/k.cu'"),
        (r"on \\server\share\k.cu", "on …/k.cu"),
        ("~/kernels/k.cu:3: error", "…/k.cu:3: error"),
        ("at https://ann:pw@host.example/x?token=abc#d, see", "at https://…, see"),
        ("file:///home/ann/k.cu", "file://…"),
        ("git+ssh://git@host.example/x.git", "git+ssh://…"),
        ("ask ann.example@mail.example or ann@workstation7", "ask … or …"),
        ("on workstation7 and WORKSTATION7.lab.example", "on host and host"),
        ("as aexample, uid 1000", "as user, uid 1000"),
        ("from 203.0.113.9 to 10.1.2.3:29500", "from … to …:29500"),
        ("eth0 fe80::1c2d:3e4f, 02:42:ac:11:00:02", "eth0 …, …"),
        ("with --api-key=abcd and password=x1", "with --api-key=… and password=…"),
        ("hf_abcdefghijklmnopqrst, ghp_ABCDEFGHIJKLMNOP1234", "…, …"),
        ("Authorization: Bearer abc.def", "Authorization: …"),
    ],
)
def test_what_tells_of_somebody_is_left_out(said: str, shown: str) -> None:
    assert scrubbed(said) == shown


@pytest.mark.parametrize(
    "said",
    [
        "CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 139.72 GiB",
        "undefined symbol: _ZN2at6native10layer_normE@@GLIBC_2.34",
        "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0 needs 3.2 GB/s of 4 GB/s, and/or a/b",
        "KeyError: 'x', token 3 of 5, cuDNN 9.1.0.70, torch 2.13.0+cu130, sm_90a at 0x7f00deadbeef",
        "backend='inductor' raised: at::native::(anonymous namespace)::kernel<float, 4>",
        "the square root of a negative, as user or test, on localhost 127.0.0.1",
        "expected 32×256 but got 64×256: can't do it, don't ask",
    ],
)
def test_what_tells_of_the_failure_stays(said: str) -> None:
    assert scrubbed(said) == said


@pytest.mark.parametrize(
    ("name", "value", "said", "shown"),
    [
        ("MY_TOKEN", "a1b2", "got a1b2 for it", "got … for it"),
        ("MY_TOKEN", "s/e+c", "got s/e+c for it", "got … for it"),
        ("MY_TOKEN", "a1b2", "MY_TOKEN is not set", "… is not set"),
        ("PLANTED", "planted-7c1f9e", "at planted-7c1f9e!", "at …!"),
        ("PLANTED", "a sentence of many words", "it is a sentence of many words", "it is …"),
        ("PLANTED", "x", "PLANTED=x in it", "… in it"),
        ("PLANTED", "x", "{'PLANTED': 'x', 'other': 1}", "{…, 'other': 1}"),
        ("MY_KEY", "-----BEGIN-----\n" + "a/b+" * 200, "key " + "a/b+" * 200, "key …"),
        ("PLANTED", "inductor", "the inductor failed", "the inductor failed"),
        ("PLANTED", "bfloat16", "no bfloat16", "no bfloat16"),
        ("MY_KEY_COUNT", "12345", "12345 keys", "12345 keys"),
    ],
)
def test_values_of_the_environment_are_left_out_where_no_word_looks_like_them(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str, shown: str
) -> None:
    monkeypatch.setenv(name, value)

    assert scrubbed(said) == shown


def test_the_home_is_left_out_however_it_is_written(somebodys_machine: Path) -> None:
    home = str(somebodys_machine)
    for said in (
        f"{home}/x/k.cu",
        f"no {home}",
        f'"{home}"',
        quote(home),
        quote(home, safe=""),
        f"in {home}/my work",
    ):
        assert "xample" not in scrubbed(said)
        assert "ann" not in scrubbed(said)
        assert "my work" not in scrubbed(said)


def test_a_machine_without_a_home_a_user_or_a_folder_is_no_reason_to_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(getpass, "getuser", fail)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))

    assert scrubbed("no /home/ann/x/k.cu") == "no …/k.cu"


def test_what_is_short_or_everybodys_is_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "vm")
    monkeypatch.setattr(getpass, "getuser", lambda: "root")

    assert scrubbed("the root on a vm") == "the root on a vm"


def test_an_error_of_an_implementation_is_described_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "planted-7c1f9e")
    error = FileNotFoundError(2, "No such file", f"{tempfile.gettempdir()}/some folder/planted-7c1f9e/k.cu")

    assert describe(error) == "FileNotFoundError: [Errno 2] No such file: '…/k.cu'"
    assert os.environ["MY_TOKEN"] not in describe(RuntimeError(f"{dict(os.environ)}"))


def test_an_error_that_holds_commands_of_the_terminal_is_described_in_words() -> None:
    assert describe(ValueError("\x1b[31mred\u202e")) == r"ValueError: \x1b[31mred\u202e"
