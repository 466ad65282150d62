from __future__ import annotations

import subprocess
import sys

from glee.version import VERSION


def test_python_dash_m_glee_is_glee() -> None:
    done = subprocess.run([sys.executable, "-m", "glee", "--version"], capture_output=True, text=True, check=True)

    assert VERSION in done.stdout
