"""Where failing examples are kept: a folder, or a Redis server that several machines share."""

from __future__ import annotations

from pathlib import Path

from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

from conformance.errors import UsageError
from conformance.fuzz.home import home


def open_database(where: str | None) -> ExampleDatabase:
    if where and "://" in where:
        return _redis(where)
    folder = Path(where) if where else home() / "examples"
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--database {folder} is a file: name a folder, or a server as redis://HOST:PORT")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--database {folder} cannot be made: {error.strerror}") from None
    return DirectoryBasedExampleDatabase(folder)


def _redis(url: str) -> ExampleDatabase:
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise UsageError(f"--database {url}: only folders and redis:// addresses are known")
    try:
        from hypothesis.extra.redis import RedisExampleDatabase
        from redis import Redis
    except ImportError:
        raise UsageError("a Redis database needs the package redis: pip install 'hypothesis[redis]'") from None
    server = Redis.from_url(url)
    try:
        server.ping()
    except Exception as error:
        raise UsageError(f"--database {url} does not answer: {error}") from None
    return RedisExampleDatabase(server)
