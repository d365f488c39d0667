from __future__ import annotations

import os
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType

import pytest

from normbench.errors import UsageError
from normbench.training import corpora
from normbench.training.corpora import BLOCK, Text, blocks


def numbered(count: int) -> bytes:
    """So many blocks, each of one byte."""
    return b"".join(bytes([number]) * BLOCK for number in range(count))


def test_every_tenth_piece_is_held_out_and_no_other() -> None:
    text = Text.of("t", [bytes([number]) for number in range(25)])

    assert list(text.held_out) == [9, 19]
    assert list(text.train) == [number for number in range(25) if number not in (9, 19)]


def test_a_text_knows_its_sizes_and_its_digest() -> None:
    text = Text.of("t", [b"ab"] * 10)

    assert (text.corpus.train_bytes, text.corpus.held_out_bytes) == (18, 2)
    assert text.corpus.digest == sha256(b"ab" * 10).hexdigest()


def test_blocks_are_of_4096_bytes_and_leave_nothing_out() -> None:
    assert [len(block) for block in blocks(bytes(2 * BLOCK + 5))] == [BLOCK, BLOCK, 5]


def test_without_files_the_corpora_are_code_and_prose_and_the_same_each_time() -> None:
    first, second = corpora.texts(), corpora.texts()

    assert [text.corpus.name for text in first] == ["code", "prose"]
    assert first == second
    assert all(text.corpus.train_bytes > 200_000 and text.corpus.held_out_bytes > 20_000 for text in first)
    assert b"def " in first[0].held_out
    assert b"Python" in first[1].held_out


def test_no_paragraph_of_prose_is_both_trained_on_and_held_out() -> None:
    text = corpora.prose()
    trained = {b" ".join(part.split()) for part in text.train.split(b"\n\n")}
    held_out = {b" ".join(part.split()) for part in text.held_out.split(b"\n\n")}

    assert trained & held_out == set()


def write_library(folder: Path, names: list[str]) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"# {name}\r\n".encode())


def test_code_is_what_belongs_to_python_by_path_without_tests_tables_and_what_was_installed(tmp_path: Path) -> None:
    kept = ["abc.py", "ast.py", "bisect.py", "cmd.py", "email/charset.py", "enum.py", "glob.py", "json/tool.py"]
    kept += ["queue.py", "random.py"]
    other = ["site-packages/torch/abc.py", "sitecustomize.py", "unittest/test/abc.py", "encodings/cp1252.py"]
    other += ["html/entities.py", "_sysconfigdata__linux.py", "pydoc_data/topics.py", "dist-packages/a.py"]
    write_library(tmp_path, [*reversed(kept), *other])
    text = corpora.code(tmp_path)

    assert text.train.decode().splitlines() == [f"# {name}" for name in kept[:9]]
    assert text.held_out == b"# random.py\n"


def test_code_is_capped_at_whole_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = sorted(sys.stdlib_module_names)[:30]
    for name in names:
        (tmp_path / f"{name}.py").write_bytes(b"x" * 100)
    monkeypatch.setattr(corpora, "_MOST_CODE", 2050)
    corpus = corpora.code(tmp_path).corpus

    assert corpus.train_bytes + corpus.held_out_bytes == 2000


def test_a_python_without_source_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no source of its standard library") as caught:
        corpora.code(tmp_path)

    assert "--text FILE" in str(caught.value.hint)


@pytest.mark.parametrize("module", [None, ModuleType("pydoc_data.topics")])
def test_a_python_without_topics_says_what_to_do(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", module)

    with pytest.raises(UsageError, match=r"no pydoc_data\.topics") as caught:
        corpora.prose()
    assert "--text FILE" in str(caught.value.hint)


def test_files_are_corpora_called_by_their_names(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "war.txt").write_bytes(numbered(20))
    found = corpora.texts([tmp_path / "a" / "war.txt", tmp_path / "b" / "war.txt"])

    assert [text.corpus.name for text in found] == ["war.txt", "war.txt (2)"]
    assert set(found[0].held_out) == {9, 19}
    assert len(found[0].train) == 18 * BLOCK


def test_a_name_that_acts_on_a_console_does_not(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m\nb"
    path.write_bytes(numbered(20))

    assert corpora.texts([path])[0].corpus.name == r"a\x1b[31m b"


def refuse(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        corpora.texts([path])
    assert caught.value.hint
    return caught.value.message


def test_what_is_no_text_of_some_length_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small").write_bytes(numbered(9))
    (tmp_path / "large").write_bytes(numbered(20))
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(corpora, "_MOST_TEXT", 19 * BLOCK)

    assert "36.0 KiB is too little" in refuse(tmp_path / "small")
    assert "is larger than 76.0 KiB" in refuse(tmp_path / "large")
    assert all("is no file" in refuse(tmp_path / name) for name in ("pipe", "missing", "."))


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "secret").write_bytes(numbered(20))
    monkeypatch.setattr(Path, "read_bytes", denied)

    assert refuse(tmp_path / "secret").endswith("can't be read: Permission denied")


def test_a_file_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(numbered(20))
    with pytest.raises(UsageError, match="twice"):
        corpora.texts([tmp_path / "a", tmp_path / "." / "a"])


def test_a_window_needs_the_byte_after_a_context_too() -> None:
    text = Text.of("t", [bytes(10)] * 10)
    corpora.require_length([text], 9)

    with pytest.raises(UsageError, match="t: holds 10 bytes out, too few for a context of 10"):
        corpora.require_length([text], 10)


def test_another_text_than_that_of_the_plan_is_refused_by_name() -> None:
    one, other, changed = Text.of("a", [b"1"] * 10), Text.of("b", [b"2"] * 10), Text.of("b", [b"3"] * 10)
    corpora.require_same([one, other], [one.corpus, other.corpus])

    with pytest.raises(UsageError, match=r"^b: not here as it was"):
        corpora.require_same([one, changed], [one.corpus, other.corpus])
    with pytest.raises(UsageError, match=r"^b: not here as it was"):
        corpora.require_same([one], [one.corpus, other.corpus])
    with pytest.raises(UsageError, match=r"^b, a: not the texts"):
        corpora.require_same([other, one], [one.corpus, other.corpus])
