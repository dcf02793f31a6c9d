"""A headless Chromium for tests that drive a page; they are skipped, saying why, where there is none."""

import contextlib
import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextlib.contextmanager
def chromium(downloads, width=1280, height=900):
    """A driver; what is downloaded goes to the folder `downloads`."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install selenium")
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    helper = shutil.which("chromedriver")
    if browser is None or helper is None:
        pytest.skip("there is no browser: chromium and chromedriver (Debian: apt install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for word in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"):
        options.add_argument(word)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(helper))
    try:
        driver.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
        resize(driver, width, height)
        yield driver
    finally:
        driver.quit()


def resize(driver, width, height):
    """A window of this size; a narrow one is a phone."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def colours(driver, scheme):
    """Light or dark."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def press(driver, *keys):
    """Keys, one after the other, to whatever has the focus."""
    from selenium.webdriver import ActionChains

    for key in keys:
        ActionChains(driver).send_keys(key).perform()


def text_of(driver, element):
    """The text of an element, by its id."""
    return driver.find_element("id", element).text


def wait_for(driver, condition, seconds=10):
    """Until it is true."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, seconds, 0.05).until(lambda _: condition())
