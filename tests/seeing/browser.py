"""Debian's chromium, headless, with a page of `espalier draw` in it."""
import json
import os
import shutil
import sys
import tempfile

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.common.utils import is_connectable
except ImportError:
    webdriver, Service = None, object


def or_skip():
    """Ends the test as skipped, saying why, where there is no browser."""
    if webdriver is None or not shutil.which("chromedriver") or not shutil.which("chromium"):
        print("no chromium, chromium-driver or python3-selenium: run ./setup.sh")
        sys.exit(77)


class Loopback(Service):
    """chromedriver by its address: a bare machine may have no /etc/hosts, and so no localhost."""

    @property
    def service_url(self):
        return f"http://127.0.0.1:{self.port}"

    def is_connectable(self):
        return is_connectable(self.port, "127.0.0.1")


class Browser:
    def __init__(self, width=1440, height=1180):
        self.profile = tempfile.TemporaryDirectory()
        options = Options()
        # By a pipe, as chromedriver too would ask for "localhost".
        for word in ("--headless=new", "--remote-debugging-pipe", "--disable-dev-shm-usage", "--disable-gpu",
                     "--hide-scrollbars", "--force-color-profile=srgb", f"--window-size={width},{height}",
                     f"--user-data-dir={self.profile.name}"):
            options.add_argument(word)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")  # chromium's sandbox does not run as root
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Loopback(shutil.which("chromedriver")), options=options)
        self.driver.set_script_timeout(3600)  # a loaded machine is slow
        self.driver.set_page_load_timeout(3600)

    def close(self):
        self.driver.quit()
        self.profile.cleanup()

    def open(self, page, dark=False):
        media = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
        self.driver.get(f"file://{page}")

    def complaints(self):
        """The errors and warnings of the page's script and the browser since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        """The addresses requested since the last call."""
        entries = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [entry["params"]["request"]["url"] for entry in entries if entry["method"] == "Network.requestWillBeSent"]

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def count(self, selector):
        return self.script("return document.querySelectorAll(arguments[0]).length", selector)

    def set(self, name, value):
        """Moves a slider or fills a field, as a hand would."""
        self.script("const it = document.getElementById(arguments[0]); it.value = arguments[1];"
                    "for (const what of ['input', 'change']) it.dispatchEvent(new Event(what))", name, str(value))

    def press(self, *keys):
        body = self.driver.find_element(By.TAG_NAME, "body")
        for key in keys:
            body.send_keys(getattr(Keys, key, key))

    def arrows(self):
        """(from, to, segment, block) of each arrow drawn."""
        return sorted(tuple(four) for four in self.script(
            "return [...document.querySelectorAll('.arrow')].map((it) => ['from', 'to', 'segment', 'block'].map((key) => +it.dataset[key]))"))

    def picture(self, path):
        self.driver.save_screenshot(str(path))
