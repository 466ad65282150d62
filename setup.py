"""Builds the launcher, a small program in C, into the package. Where that cannot be done, Glee does without it."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import Command, Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build

sys.path.insert(0, str(Path(__file__).parent / "scripts"))
from build_launcher import SOURCE, compile_launcher, find_compiler


class BuildLauncher(Command):
    """A part of build, as build_ext is one."""

    def initialize_options(self) -> None:
        self.build_lib: str | None = None
        self.editable_mode = False

    def finalize_options(self) -> None:
        self.set_undefined_options("build", ("build_lib", "build_lib"))

    def run(self) -> None:
        said = compile_launcher(self._target())
        if said is not None:
            self.warn(f"the launcher was not built, so Glee uses the one in Python:\n{said}")

    def _target(self) -> Path:
        return Path("" if self.editable_mode else self.build_lib or "", SOURCE).with_suffix("")

    def get_source_files(self) -> list[str]:
        return [SOURCE, "scripts/build_launcher.py"]

    def get_outputs(self) -> list[str]:
        return [str(self._target())] if self._target().exists() else []

    def get_output_mapping(self) -> dict[str, str]:
        return {}


class Build(build):
    sub_commands = [*build.sub_commands, ("build_launcher", None)]  # noqa: RUF012


class Wheel(bdist_wheel):
    """For one machine, but for any Python: the program knows nothing of the interpreter."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class WithProgram(Distribution):
    def has_ext_modules(self) -> bool:
        return bool(find_compiler())


setup(cmdclass={"build": Build, "build_launcher": BuildLauncher, "bdist_wheel": Wheel}, distclass=WithProgram)
