# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Fixtures of all tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from syrupy.data import Snapshot, SnapshotCollection
from syrupy.extensions.single_file import SingleFileSnapshotExtension

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion
    from syrupy.location import PyTestLocation

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"


class PromptFile(SingleFileSnapshotExtension):
    """Keep a prompt in ``snapshots/<format>/<case>.txt``, to the byte.

    The format is read off the test's module (``test_glm4_tools``), the case off its parameter
    (``test_prompt[weather_tools]``).
    """

    file_extension = "txt"

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(SNAPSHOTS / test_location.basename.removeprefix("test_").replace("_", "-"))

    @classmethod
    def get_file_basename(cls, *, test_location: PyTestLocation, index: Any) -> str:
        return test_location.testname.partition("[")[2].removesuffix("]")

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: Any = 0) -> str:
        return test_location.testname

    @classmethod
    def matches_test_location(cls, *, test_location: PyTestLocation, snapshot_location: str) -> bool:
        return str(Path(snapshot_location).parent) == cls.dirname(test_location=test_location)

    def serialize(self, data: Any, **_: Any) -> str:
        # syrupy's own binary mode would show a difference as one line of escapes.
        assert isinstance(data, str)
        return data

    def read_snapshot_collection(self, *, snapshot_location: str) -> SnapshotCollection:
        collection = SnapshotCollection(location=snapshot_location)
        collection.add(Snapshot(name=f"test_prompt[{Path(snapshot_location).stem}]"))
        return collection

    def read_snapshot_data_from_location(self, *, snapshot_location: str, **_: Any) -> str | None:
        # Bytes in, bytes out: the text modes of both open() and syrupy translate line ends.
        try:
            return Path(snapshot_location).read_bytes().decode()
        except FileNotFoundError:
            return None

    @classmethod
    def write_snapshot_collection(cls, *, snapshot_collection: SnapshotCollection, **_: Any) -> None:
        (snapshot,) = snapshot_collection
        assert isinstance(snapshot.data, str)
        Path(snapshot_collection.location).write_bytes(snapshot.data.encode())


@pytest.fixture
def prompt_file(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """The stored prompt of the case that a test is parametrized by."""
    return snapshot.use_extension(PromptFile)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--conversations",
        type=int,
        metavar="N",
        help="generate N conversations a format, other ones at every run (default: the same 2,000)",
    )


@pytest.fixture
def conversations(request: pytest.FixtureRequest) -> int:
    """How many conversations to generate for each format."""
    count: int | None = request.config.getoption("--conversations")
    return 2_000 if count is None else count


@pytest.fixture
def derandomize(request: pytest.FixtureRequest) -> bool:
    """Whether to generate the same conversations at every run."""
    return request.config.getoption("--conversations") is None
