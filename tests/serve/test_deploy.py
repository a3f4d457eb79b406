"""deploy/ for weir serve: it asks only for metrics that there are, and the tools that it is for take it."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = SOURCE / "deploy"
METRICS = {line.split()[0] for line in open(SOURCE / "api/serve_metric.tbl") if re.match("nv_|weir_", line)}
NAME = re.compile(r"\b(?:weir|nv)_\w+")


def known(name):
    return name in METRICS or re.sub("_(bucket|sum|count)$", "", name) in METRICS


class Deploy(unittest.TestCase):
    def test_metrics_exist(self):
        panels = json.load(open(DEPLOY / "grafana/weir-serve.json"))["panels"]
        queries = [target["expr"] for panel in panels for target in panel.get("targets", ())]
        rules = (DEPLOY / "prometheus/weir-serve.rules.yml").read_text()
        names = set(NAME.findall(" ".join(queries))) | set(NAME.findall(re.sub(r'(summary|description): ".*"', "", rules)))
        self.assertGreater(len(names), 8)
        self.assertEqual({name for name in names if not known(name)}, set())
        self.assertFalse(known("weir_serve_speed"))  # the control

    def test_promtool_takes_the_rules(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed")
        for command in (("check", "config", "--syntax-only", "weir-serve.yml"), ("check", "rules", "weir-serve.rules.yml"),
                        ("test", "rules", "weir-serve.rules.test.yml")):
            subprocess.run(["promtool", *command], check=True, cwd=DEPLOY / "prometheus")

    def test_nginx_takes_its_configuration(self):
        if not shutil.which("nginx") or not shutil.which("openssl"):
            self.skipTest("nginx or openssl is not installed")
        with tempfile.TemporaryDirectory() as work:
            shutil.copy(DEPLOY / "proxy/nginx.conf", work)
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "server.key",
                            "-out", "server.pem"], cwd=work, check=True, stderr=subprocess.DEVNULL)
            def check():
                return subprocess.run(["nginx", "-t", "-p", work, "-c", work + "/nginx.conf", "-g", "pid %s/pid; error_log stderr;" % work]).returncode
            self.assertEqual(check(), 0)
            os.unlink(work + "/server.key")
            self.assertNotEqual(check(), 0)  # the control

    def test_envoy_takes_its_configuration(self):
        if not shutil.which("envoy"):
            self.skipTest("envoy is not installed")
        subprocess.run(["envoy", "--mode", "validate", "-c", DEPLOY / "proxy/envoy.yaml"], check=True)


if __name__ == "__main__":
    unittest.main()
