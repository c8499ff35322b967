"""Pictures of a page, to be looked at: every view at 1400 × 900 and at 390 × 844.

python -m tests.support.screenshots page.html FOLDER
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.support.browser import FLAGS, Tab

SIZES = {"wide": (1400, 900), "phone": (390, 844)}


def take(page: Path, folder: Path) -> list[Path]:
    """Write FOLDER/VIEW-SIZE.png for each view of the page; return the files."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    made = []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
        for size, (width, height) in SIZES.items():
            tab = Tab(browser, width, height)
            views = tab.open(page.resolve()).eval_on_selector_all(
                "#views button", "all => all.map(b => b.dataset.view)"
            )
            for view in views:
                tab.open(page.resolve(), f"#view={view}").wait_for_timeout(300)
                made.append(folder / f"{view}-{size}.png")
                tab.page.screenshot(path=made[-1])
            tab.context.close()
        browser.close()
    return made


if __name__ == "__main__":
    print(*take(Path(sys.argv[1]), Path(sys.argv[2])), sep="\n")
