"""Pages in a real Chromium: accessible, quiet, within their width, and usable by keyboard alone.

They run where Playwright's Python package and Chromium are installed, and say so where not.
"""

import shutil
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from builders import app_over
from werkzeug.serving import make_server

from store.settings import SHIPPED_DATA

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="browser tests need: pip install '.[browser]'"
)
axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="browser tests need: pip install '.[browser]'"
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="browser tests need Chromium: see README.md"),
]

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
WIDTHS = (390, 1280)
SMALL_TARGETS = """() => [...document.querySelectorAll("a, button, input, summary")].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width && !e.matches(".skip") && getComputedStyle(e).display !== "inline"
    && (box.width < 24 || box.height < 24);
}).map(e => e.outerHTML.slice(0, 100))"""
MISPLACED = """() => [...document.querySelectorAll(".ranking .chip")].filter(chip => {
  const name = chip.parentElement.querySelector(".what").getBoundingClientRect();
  return chip.getBoundingClientRect().top < name.bottom || chip.scrollWidth > chip.clientWidth;
}).map(chip => chip.parentElement.innerText)"""


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    """The address of a server over the shipped data."""
    server = make_server("127.0.0.1", 0, app_over(SHIPPED_DATA, base_url=None), threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def paths(base: str, browser: Any) -> list[str]:
    """One page of every kind, found by following the site's own API."""
    page = browser.new_page()
    category = page.request.get(f"{base}/api/v1/categories.json").json()[0]["slug"]
    verdict = page.request.get(f"{base}/api/v1/best/{category}.json").json()
    product, other = (entry["slug"] for entry in verdict["combined"][:2])
    page.close()
    return [
        "/", f"/best/{category}", f"/best/{category}?asOf={verdict['updated']}",
        f"/product/{product}", f"/product/{product}/polls", "/changes",
        "/changes?since=2026-11-08", "/data", "/mentions", "/labs", "/labs/agreement-on-first",
        "/methodology", f"/search?q={product}",
        "/search", "/docs", "/best/crm-software", "/labs/how-noisy-is-one-answer", "/topics",
        "/topics/apps", "/compare",
        f"/compare?a={product}&b={other}", f"/compare?a={product}&b=zzzz", "/models",
    ]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_is_accessible_and_quiet(
    base: str, browser: Any, paths: list[str], width: int, scheme: str
) -> None:
    """Axe finds nothing; nothing is logged, foreign, too small to hit or wider than the screen."""
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, bypass_csp=False
    )
    page, noise = context.new_page(), []
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith(base) else noise.append(r.url))
    for path in paths:
        page.goto(base + path)
        # An open menu lies over what is below it, so it is opened after axe has looked there.
        page.evaluate("document.querySelectorAll('main details').forEach(d => d.open = true)")
        options = {"runOnly": {"type": "tag", "values": TAGS}}
        found = axe.Axe().run(page, options=options).response["violations"]
        assert not found, (path, [(v["id"], v["nodes"][0]["html"]) for v in found])
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.evaluate(SMALL_TARGETS) == [], path
    assert noise == []
    context.close()


@pytest.mark.parametrize("width", [320, 360, 393, 430, 600, 768, 820])
def test_a_narrow_ranking_has_each_assistants_place_below_the_product(
    base: str, browser: Any, width: int
) -> None:
    """Beside the name they run into one another and out of the screen."""
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.goto(f"{base}/best/humidifier")
    assert page.locator(".ranking .chip").count() > 4
    assert page.evaluate(MISPLACED) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_escape_closes_the_menu(base: str, browser: Any) -> None:
    """And the keyboard is where it was before."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(base)
    page.locator(".burger summary").press("Enter")
    page.locator(".burger a").first.press("Escape")
    assert not page.locator(".burger").evaluate("menu => menu.open")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.close()


def test_search_and_copy_need_only_the_keyboard(base: str, browser: Any, paths: list[str]) -> None:
    """Type, choose a suggestion with the arrow, open it, and copy the sentence to quote."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(base + paths[1])
    title = page.locator("h1").inner_text()
    page.goto(base)
    while page.evaluate("document.activeElement.name") != "q":
        page.keyboard.press("Tab")
    page.keyboard.type(title.removeprefix("Best "))
    page.locator(".suggestions a").first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/best/*")
    copy = page.locator('[data-copy="quote"]')
    while not copy.evaluate("button => button === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Copied.").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    slug = page.url.rpartition("/")[2]
    assert copied == page.request.get(f"{base}/api/v1/best/{slug}.json").json()["quote"]
    context.close()


def test_escape_closes_the_suggestions(base: str, browser: Any) -> None:
    """Escape returns to the box and takes the suggestions away; Enter then searches."""
    page = browser.new_page()
    page.goto(base)
    page.get_by_label("What are you looking for?").press_sequentially("crm")
    page.locator(".suggestions a").first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    assert not page.locator(".suggestions").is_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=crm")
    page.close()


def test_nothing_needs_javascript(base: str, browser: Any, paths: list[str]) -> None:
    """With scripts off, search works as a form and no control that needs them is shown."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(base)
    page.get_by_label("What are you looking for?").fill("crm")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=crm")
    page.goto(base + paths[1])
    assert page.locator("#quote").is_visible()
    assert not page.locator('[data-copy="quote"]').is_visible()
    context.close()
