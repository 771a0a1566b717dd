"""Measure pictures in a headless browser, if installed: text boxes and dark mode."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pytest

NAMES = (
    "chromium", "chromium-headless-shell", "chromium-browser", "google-chrome",
    "google-chrome-stable", "chrome", "chrome-headless-shell",
)
_OPTIONS = ("--headless", "--disable-gpu", "--no-sandbox", "--no-first-run", "--virtual-time-budget=4000")
_MEASURE = """
const found = {};
for (const svg of document.querySelectorAll('svg.te')) {
  const all = svg.getBoundingClientRect(), lines = [];
  for (const text of svg.querySelectorAll('text')) {
    const box = text.getBoundingClientRect();
    lines.push([text.firstChild ? text.firstChild.data : '', box.left - all.left, box.top - all.top,
      box.right - all.left, box.bottom - all.top]);
  }
  const paper = svg.querySelector('.paper');
  found[svg.parentNode.id] = {width: all.width, height: all.height, lines,
    titles: svg.querySelectorAll('title').length, paper: getComputedStyle(paper).fill};
}
const done = document.createElement('pre');
done.id = 'done';
done.textContent = JSON.stringify(found);
document.body.append(done);
"""


def browser() -> str:
    """Return the command of a browser, or skip the test if none is installed."""
    found = os.environ.get("TECOMP_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no headless browser; set TECOMP_BROWSER to the command of a Chromium")
    return found


def answer(page: str, folder: Path, *, is_dark: bool = False) -> Any:
    """Return the JSON that the script of a page writes to the element with the id `done`."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    scheme = ["--blink-settings=preferredColorScheme=0"] if is_dark else []
    done = subprocess.run(
        [browser(), *_OPTIONS, *scheme, f"--user-data-dir={folder / 'profile'}", "--dump-dom",
         path.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )
    found = re.search('<pre id="done">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:]
    return json.loads(unescape(found.group(1)))


def measured(pictures: Mapping[str, str], folder: Path, *, is_dark: bool = False) -> Any:
    """Return size, text lines with bounding boxes, and background colour of each picture."""
    bodies = "".join(f'<div id="{name}">{picture}</div>' for name, picture in pictures.items())
    page = f'<!doctype html><meta charset="utf-8"><body>{bodies}<script>{_MEASURE}</script></body>'
    return answer(page, folder, is_dark=is_dark)
