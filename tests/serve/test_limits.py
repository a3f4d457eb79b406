"""The limits of config.pbtxt, as requests meet them."""
import json
import unittest

import cases
import http2
from server import Repository, Server, tensor

ONE = [tensor("X", "FP32", -1, 4)], [tensor("Y", "FP32", -1, 4)]
LEVELS = """dynamic_batching { priority_levels: 2 default_priority_level: 2
    priority_queue_policy { key: 1 value { max_queue_size: 1 } } default_queue_policy { max_queue_size: 2 } }"""
TIMEOUT = "dynamic_batching { default_queue_policy { default_timeout_microseconds: 1000 timeout_action: %s } }"


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        repository = Repository("limits")
        repository.add("levels", *ONE, LEVELS, batch=1, us=300000)
        repository.add("rejects", *ONE, TIMEOUT % "REJECT", batch=1, us=300000)
        repository.add("delays", *ONE, TIMEOUT % "DELAY", batch=1, us=300000)
        repository.add("hurried", *ONE, 'parameters { key: "weir.deadline_us" value { string_value: "1" } }', us=100)
        repository.add("latest", *ONE, "version_policy { latest { num_versions: 2 } }", versions=(1, 2, 30))
        repository.add("specific", *ONE, "version_policy { specific { versions: [1, 2] } }", versions=(1, 2, 30))
        folder = repository.add("named", *ONE, 'default_model_filename: "other.json"')
        (folder / "1" / "model.json").rename(folder / "1" / "other.json")
        for data in ("zero", "random"):
            repository.add(data, *ONE, """model_warmup { name: "s" batch_size: 3 count: 5 inputs { key: "X" value {
                data_type: TYPE_FP32 dims: 4 %s_data: true } } }""" % data)
        repository.add("any", *ONE)
        repository.add("alone", *ONE, batch=1, us=1, jitter=.5, how="spin")
        cls.server = Server(repository.path, "--model-control=explicit", *["--load-model=" + path.name for path in repository.path.iterdir()])

    @classmethod
    def tearDownClass(cls):
        assert cls.server.end() == 0

    def at_once(self, model, *parameters):
        """Requests that the server reads together: whether each was answered, and what it said."""
        with http2.Http2(self.server) as connection:
            sent = b""
            for i, more in enumerate(parameters):
                fields = http2.fields((":method", "POST"), (":scheme", "http"), (":path", "/v2/models/%s/infer" % model), (":authority", "x"))
                sent += http2.frame(http2.HEADERS, http2.END_HEADERS, 2 * i + 1, fields)
                sent += http2.frame(http2.DATA, http2.END_STREAM, 2 * i + 1, json.dumps(cases.echo(cases.ROW, parameters=more)).encode())
            connection.socket.sendall(sent)
            answers = {}
            while len(answers) < len(parameters):
                kind, flags, stream, part = connection.receive()
                if kind == http2.DATA:
                    answers[stream] = part
            return [json.loads(answers[2 * i + 1]) for i in range(len(parameters))]

    def test_short_batches_that_are_read_together_all_run(self):
        # The loop begins with what is typically short, and leaves the rest to the device's thread when that takes longer.
        for _ in range(10):
            for n in range(1, 33):
                self.assertEqual([answer["outputs"][0]["data"] for answer in self.at_once("alone", *[{}] * n)], [cases.ROW] * n)

    def test_each_level_has_its_own_queue(self):
        first, second = {"priority": 1}, {"priority": 2}
        answers = self.at_once("levels", *[second] * 8, *[first] * 4)
        full = ["error" in answer for answer in answers]
        for answer in answers:
            self.assertRegex(answer.get("error", "queue of model 'levels' is full"), "queue of model 'levels' is full")
        # what the device has taken meanwhile makes room for one more
        self.assertIn(sum(full[:8]), (5, 6), answers)
        self.assertIn(sum(full[8:]), (2, 3), answers)
        self.assertEqual(full[:2] + full[8:9], [False] * 3, "no level fills another's queue")

    def test_a_time_in_the_queue_is_rejected_or_waited_for(self):
        self.assertIn("in time", " ".join(answer.get("error", "") for answer in self.at_once("rejects", {}, {}, {})))
        self.assertEqual([answer for answer in self.at_once("delays", {}, {}, {}) if "error" in answer], [])

    def test_a_model_has_a_deadline(self):
        self.assertEqual(self.server.infer("hurried", cases.echo(cases.ROW)).code, 429)

    def test_versions_are_those_of_the_policy(self):
        for model, served in (("latest", ["2", "30"]), ("specific", ["1", "2"])):
            self.assertEqual(self.server.ask("GET", "/v2/models/" + model).json["versions"], served)
            for version in ("1", "2", "30"):
                code = self.server.ask("GET", "/v2/models/%s/versions/%s/ready" % (model, version)).code
                self.assertEqual(code == 200, version in served, (model, version))

    def test_files_and_samples_are_those_that_are_named(self):
        for model in ("named", "zero", "random"):
            self.assertEqual(self.server.infer(model, cases.echo(cases.ROW)).code, 200)

    def test_what_is_beyond_a_limit_is_not_loaded(self):
        parameter = lambda key, value: {"parameters": {"weir." + key: {"string_value": value}}}
        for change, said in (
                ({"max_batch_size": 1025}, "1024"), ({"max_batch_size": -1}, "max_batch_size"),
                ({"dynamic_batching": {"preferred_batch_size": [9]}}, "preferred_batch_size"),
                ({"dynamic_batching": {"default_priority_level": 1}}, "priority_levels is 0"),
                ({"dynamic_batching": {"priority_levels": 2, "default_priority_level": 3}}, "priority_levels is 2"),
                ({"dynamic_batching": {"default_queue_policy": {"max_queue_size": 4294967296}}}, "too large"),
                ({"input": [{"name": "X%d" % i, "data_type": "TYPE_FP32", "dims": [4]} for i in range(65)]}, "64"),
                ({"input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [1] * 9}]}, "dims"),
                ({"instance_group": [{"passive": True}]}, "passive"), ({"version_policy": {"latest": {"num_versions": 0}}}, "num_versions"),
                (parameter("buckets", "4,2"), "weir.buckets"), (parameter("buckets", "1,9"), "weir.buckets"),
                (parameter("weight", "0"), "weir.weight"), (parameter("deadline_us", "-1"), "deadline_us")):
            config = json.dumps(dict({"backend": "synthetic", "max_batch_size": 8}, **change))
            answer = self.server.ask("POST", "/v2/repository/models/any/load", {"parameters": {"config": config}})
            self.assertEqual(answer.code, 400, (change, answer))
            self.assertIn(said, answer.json["error"], change)
            self.assertEqual(self.server.infer("any", cases.echo(cases.ROW)).code, 200)


if __name__ == "__main__":
    unittest.main()
