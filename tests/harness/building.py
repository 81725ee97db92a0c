"""Programs of the tests that are built when they are first needed."""

import contextlib
import pathlib
import shutil
import subprocess

import pytest

CACHE = pathlib.Path(__file__).parents[2] / ".cache"


def build(folder, command, made):
    """Builds the program in this folder of the tests once, and returns what was made of it in .cache."""
    source, target = pathlib.Path(__file__).parents[1] / folder, CACHE / folder
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    files = [file for file in source.iterdir() if file.is_file()]
    with contextlib.suppress(FileNotFoundError):
        if (
            all((target / file.name).read_bytes() == file.read_bytes() for file in files)
            and (target / made).exists()
        ):
            return target / made
    target.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, target)
    done = subprocess.run(command, cwd=target, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"{folder} cannot be built here: {(done.stderr or done.stdout)[-300:]}")
    return target / made
