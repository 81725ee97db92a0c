"""What tests of the console share: a page that has nothing to complain of, and requests that make figures."""

import json

from . import until

SERIOUS = {"serious", "critical"}


def check(browser, admin):
    """The page as it is now is accessible, its scripts have not failed, and it has asked nobody else."""
    found = [one for one in browser.do("axe") if one["impact"] in SERIOUS]
    assert not found, json.dumps(found, indent=1)
    complaints, asked = browser.do("complaints"), set(browser.do("asked"))
    assert not complaints, "\n".join(complaints)
    assert asked <= {admin, ""}, asked


def menu(browser):
    """The views that the page offers."""
    code = "[...document.querySelectorAll('#menu a')].map((link) => link.textContent)"
    return browser.do("evaluate", code=code)


def press(browser, text, within="main"):
    """Clicks the first button with this text."""
    code = f"""(() => {{
        const all = [...document.querySelectorAll({json.dumps(within + " button")})];
        const found = all.find((button) => button.textContent === {json.dumps(text)});
        found?.click();
        return !!found;
    }})()"""
    until(lambda: browser.do("evaluate", code=code), f"there is a button {text!r} in {within}")
