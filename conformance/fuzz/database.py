"""Where failing examples are kept: a folder, or a Redis server that several machines share."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

from conformance.errors import UsageError, first_line
from conformance.fuzz.home import home

MAX_EXAMPLE = 1 << 20


def open_database(where: str | None) -> ExampleDatabase:
    if where and "://" in where:
        return _redis(where)
    folder = Path(where) if where else home() / "examples"
    if odd := _odd_file(folder):
        raise UsageError(f"--database {folder} holds {odd}, which is no example: remove it, or name another folder")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--database {folder} is a file: name a folder, or a server as redis://HOST:PORT")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--database {folder} cannot be made: {error.strerror}") from None
    return DirectoryBasedExampleDatabase(folder)


def _odd_file(folder: Path) -> Path | None:
    """A file that hypothesis would read for ever, or that is too large: a FIFO, a device, a link out of the folder."""
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            file = Path(parent, name)
            with suppress(OSError):
                mode = file.lstat()
                regular = stat.S_ISREG(mode.st_mode) and mode.st_size <= MAX_EXAMPLE
                if not regular and not stat.S_ISDIR(mode.st_mode):
                    return file.relative_to(folder)
    return None


def without_secrets(url: str) -> str:
    """The address of a server without user, password and options, and without a port that is no number."""
    scheme, _, rest = url.partition("://")
    place, slash, path = re.split("[?#]", rest.rpartition("@")[2])[0].partition("/")
    host, colon, port = place.partition(":")
    port = port if port.isdigit() else "…" if colon else ""
    return f"{scheme}://{'…@' if '@' in rest else ''}{host}{colon}{port}{slash}{path}"


def complaint(url: str, error: Exception) -> str:
    """What a server's error says, unless it repeats a part of the address that is not shown."""
    text, shown = first_line(error), without_secrets(url)
    hidden = [word for word in re.split(r"[:@/?#&=]+", url) if word and word not in shown]
    return type(error).__name__ if any(word in text for word in hidden) else text


def _redis(url: str) -> ExampleDatabase:
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise UsageError(f"--database {without_secrets(url)}: only folders and redis:// addresses are known")
    try:
        from hypothesis.extra.redis import RedisExampleDatabase
        from redis import Redis
    except ImportError:
        raise UsageError("a Redis database needs the package redis: pip install 'hypothesis[redis]'") from None
    try:
        server = Redis.from_url(url)
        server.ping()
    except Exception as error:
        raise UsageError(f"--database {without_secrets(url)} does not answer: {complaint(url, error)}") from None
    return RedisExampleDatabase(server)


class Keyed(ExampleDatabase):
    """A database shared by many searches: each finds its own examples under its own name. One that is damaged, or does
    not answer any more, is complained of, and the search goes on without it."""

    def __init__(
        self, database: ExampleDatabase, name: str, complain: Callable[[str], None] = lambda text: None
    ) -> None:
        super().__init__()
        self.database, self.prefix, self.complain = database, name.encode() + b"/", complain

    def _key(self, key: bytes) -> bytes:
        # Not hypothesis' own key, a digest of the test function: the same search on another machine must find it.
        return self.prefix + key[-8:] if b".secondary" in key or b".pareto" in key else self.prefix

    @contextmanager
    def _complaining(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.complain(f"the example database cannot be used, and is left out: {first_line(error)}")

    def save(self, key: bytes, value: bytes) -> None:
        with self._complaining():
            self.database.save(self._key(key), value)

    def fetch(self, key: bytes) -> Iterator[bytes]:
        with self._complaining():
            for value in self.database.fetch(self._key(key)):
                if readable(value):
                    yield value
                else:
                    self.complain("the example database holds entries that are no examples, which are left out")

    def delete(self, key: bytes, value: bytes) -> None:
        with self._complaining():
            self.database.delete(self._key(key), value)


def readable(value: bytes) -> bool:
    """Can hypothesis read it? It would pass over what it cannot without a word."""
    try:
        from hypothesis.database import choices_from_bytes
    except ImportError:
        return True
    return choices_from_bytes(value) is not None
