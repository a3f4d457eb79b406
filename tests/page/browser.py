"""A headless Chromium, driven through its remote debugging pipe: no port, no further package.

Everything that it complains about is kept: errors and warnings of the console, exceptions, and
every request that is not for the page itself.
"""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium", "google-chrome")


def find():
    """The browser's path, or None."""
    return next((p for p in map(shutil.which, NAMES) if p), None)


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="weir-page-")
        to_read, self.to = os.pipe()
        self.out, to_write = os.pipe()
        # One process for all pages: else each starts one, and compiles the script again.
        command = [find(), "--headless", "--remote-debugging-pipe", "--disable-gpu", "--renderer-process-limit=1",
                   "--disable-site-isolation-trials"]
        command += ["--disable-dev-shm-usage", "--user-data-dir=" + self.profile, "about:blank"]
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")

        def pipes():
            # The browser reads from 3 and writes to 4; neither may be overwritten on the way.
            a, b = os.dup2(to_read, 100), os.dup2(to_write, 101)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            command,
            preexec_fn=pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)
        self.room = b""
        self.number = 0
        self.events = []
        self.pages = []

    def read(self):
        while b"\0" not in self.room:
            if not select.select([self.out], [], [], 60)[0]:
                raise TimeoutError("the browser says nothing")
            part = os.read(self.out, 1 << 20)
            if not part:
                raise EOFError("the browser is gone")
            self.room += part
        message, self.room = self.room.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, session=None, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self.to, rest):]
        while True:
            answer = self.read()
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def close_pages(self):
        """A page that nobody looks at is drawn all the same."""
        for page in self.pages:
            self.ask("Target.closeTarget", targetId=page.target)
            while not any(e["method"] == "Target.detachedFromTarget" and e["params"]["sessionId"] == page.session
                          for e in self.events):
                self.events.append(self.read())  # until it is gone, and takes no focus from the next
        self.pages, self.events = [], []

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.to)
        os.close(self.out)
        shutil.rmtree(self.profile, ignore_errors=True)


DRAWN = "new Promise(f => requestAnimationFrame(() => requestAnimationFrame(() => f(1))))"
READY = "document.documentElement.dataset.ready === 'yes'"


class Page:
    """One page of its own, opened from a file."""

    def __init__(self, browser, path, width=1400, height=900, dark=False, ready=READY):
        self.browser = browser
        self.target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        browser.pages.append(self)
        attached = browser.ask("Target.attachToTarget", targetId=self.target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(domain + ".enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait(ready)

    def ask(self, method, **params):
        return self.browser.ask(method, self.session, **params)

    def js(self, expression):
        how = {"returnByValue": True, "awaitPromise": True}
        answer = self.ask("Runtime.evaluate", expression=expression, **how)
        if "exceptionDetails" in answer:
            raise RuntimeError(expression + ": " + json.dumps(answer["exceptionDetails"])[:400])
        return answer["result"].get("value")

    def wait(self, expression, seconds=60):
        end = time.monotonic() + seconds
        while True:
            try:
                if self.js(expression):
                    return
            except RuntimeError:
                pass  # between two pages there is nothing to ask
            if time.monotonic() > end:
                raise TimeoutError(f"{expression} did not become true: {self.complaints()}")
            # Two pictures later; a page that is not there yet answers at once.
            self.ask("Runtime.evaluate", expression=DRAWN, awaitPromise=True)

    def drawn(self):
        self.js(DRAWN)

    def key(self, key):
        text = key if len(key) == 1 else "\r" if key == "Enter" else ""
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.drawn()

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mousePressed", x, y, button="left", clickCount=1, buttons=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.drawn()

    def picture(self, path, clip=None):
        """The window, or a part of the page: clip is {x, y, width, height, scale}."""
        how = {"clip": clip, "captureBeyondViewport": True} if clip else {}
        answer = self.ask("Page.captureScreenshot", format="png", optimizeForSpeed=False, **how)
        with open(path, "wb") as out:
            out.write(base64.b64decode(answer["data"]))

    def complaints(self):
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            method, params = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append("exception: " + json.dumps(params["exceptionDetails"])[:400])
            if method == "Runtime.consoleAPICalled" or method == "Log.entryAdded":
                found.append("console: " + json.dumps(params)[:400])
            url = params["request"]["url"] if method == "Network.requestWillBeSent" else "data:"
            if not url.startswith(("file:", "data:", "about:")):
                found.append("request: " + url[:200])
        return found
