"""A server that runs a model of PyTorch, packed and described as the exporter does, on the simulated GPU."""
import base64
import os
import sys
import unittest
import zipfile

import cases
from server import Repository, Server, tensor

os.environ.pop("WEIR_SIM", None)
BUILD = os.environ["WEIR_BUILD"]
sys.path.insert(0, os.path.join(BUILD, "lib", "weir", "python"))
from weir import export_torch  # noqa: E402

IMAGE = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry add(.param .u64 a, .param .u64 b)\n{\n\tret;\n}\n"
CONFIG = export_torch.config_text("model", 4, [("x", "float32", [2])], [("y", "float32", [2]), ("w", "float32", [2])])


def add(repository, name, object_name="alone"):
    folder = repository.path / name
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(CONFIG.replace("model", name, 1))
    with zipfile.ZipFile(folder / "1" / "model.pt2", "w", zipfile.ZIP_DEFLATED) as z:
        where = "model/data/aotinductor/model/"
        z.write(os.path.join(BUILD, "tests", "torch", object_name + ".so"), where + "x.wrapper.so")
        z.writestr(where + "add.ptx", IMAGE)
        z.writestr(where + "x.wrapper_metadata.json", '{"AOTI_DEVICE_KEY": "cuda"}')
    return folder


class Torch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = Repository("torch").quick()
        add(cls.repository, "model")
        add(cls.repository, "needs", "needs")

    def serve(self, *options):
        server = Server(self.repository.path, "--sim", *options, wait=False)
        self.addCleanup(server.end)
        return server

    def test_a_model_answers_by_graphs_and_one_that_needs_libtorch_says_so(self):
        server = self.serve("--torch")
        server.wait_for(lambda: server.ask("GET", "/v2/models/model/ready").code == 200)
        self.assertEqual(server.ask("GET", "/v2/models/model").json["platform"], "torch_aoti")
        body = {"inputs": [dict(tensor("x", "FP32", 3, 2), data=[1, 2, 3, 4, 5, 6])]}
        for _ in range(3):
            y, w = server.infer("model", body).json["outputs"]
            self.assertEqual((y["shape"], y["data"]), ([3, 2], [1, 2, 3, 4, 5, 6]))
            self.assertEqual(w["data"], [10, 20, 30, 40, 50, 60])
        stats = server.ask("GET", "/v2/models/model/stats").json["model_stats"][0]
        self.assertGreaterEqual(stats["weir_graph_replays"], 2, stats)
        server.wait_for(lambda: "needs libtorch for aoti_torch_cuda_addmm_out, and" in server.said())

    def test_without_the_option_no_code_of_the_repository_runs(self):
        server = self.serve()
        server.wait_for(lambda: server.ask("GET", "/v2/models/echo/ready").code == 200)
        server.wait_for(lambda: "model model: it is code, which weir serve runs with --torch alone" in server.said())
        self.assertNotEqual(server.ask("GET", "/v2/models/model/ready").code, 200)

    def test_no_client_brings_code(self):
        server = self.serve("--torch", "--model-control=explicit")
        server.wait_for(lambda: server.ask("GET", "/v2/health/live").code == 200)
        package = (self.repository.path / "model" / "1" / "model.pt2").read_bytes()
        answer = server.ask("POST", "/v2/repository/models/model/load", {"parameters": {
            "config": '{"platform": "torch_aoti", "max_batch_size": 4}',
            "file:1/model.pt2": base64.b64encode(package).decode()}})
        self.assertNotEqual(answer.code, 200)
        self.assertIn("its file is code, which no load request may bring", answer.json["error"])
        self.assertEqual(server.ask("POST", "/v2/repository/models/model/load", {}).code, 200)


class Exporter(unittest.TestCase):
    def test_sizes_and_descriptions(self):
        self.assertEqual(export_torch.batch_sizes(1), [1])
        self.assertEqual(export_torch.batch_sizes(8), [1, 2, 4, 8])
        self.assertEqual(export_torch.batch_sizes(12), [1, 2, 4, 8, 12])
        self.assertEqual(export_torch.input_of("x=float16:3,224"), ("x", "float16", [3, 224]))
        self.assertEqual(export_torch.input_of("x=int64:"), ("x", "int64", []))
        for wrong in ("x", "=float16:3", "x=half:3", "x=float16:a"):
            with self.assertRaises(Exception):
                export_torch.input_of(wrong)
        self.assertIn("dims: [1] reshape { shape: [] }", export_torch.config_text("m", 2, [("x", "int64", [])], []))
        with self.assertRaises(export_torch.Error):
            export_torch.config_text("m", 2, [("x", "complex64", [1])], [])

    def test_what_can_not_be_exported_is_said(self):
        for words in (["r", "nosuchmodule:f"], ["r", "os:nosuchfunction"]):
            self.assertEqual(export_torch.main(words), 1)


if __name__ == "__main__":
    unittest.main()
