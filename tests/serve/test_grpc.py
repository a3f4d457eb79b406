"""gRPC as clients of Triton and KServe speak it, by the messages that the build makes a .proto file of."""
import json
import mmap
import os
import queue
import struct
import unittest

import grpc
import health_pb2
import inference_pb2 as pb

import cases
from server import PATIENCE, Repository, Server, tensor

SERVICE = "/inference.GRPCInferenceService/"
LARGE = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
FLOATS, ROW = cases.FLOATS, cases.ROW
CODE = grpc.StatusCode


def setUpModule():
    global server, channel
    repository = Repository("grpc").standard()
    for datatype in cases.JSON_TYPES:
        repository.add("of_" + datatype, [tensor("X", datatype, -1, 2)], [tensor("Y", datatype, -1, 2)])
    repository.add("steady", [tensor("X", "FP32", -1, 4)], [tensor("Y", "FP32", -1, 4)], us=10000)
    names = sorted(p.name for p in repository.path.iterdir())
    server = Server(repository.path, "--model-control=explicit", *["--load-model=" + name for name in names])
    channel = grpc.insecure_channel("127.0.0.1:%d" % server.port, options=LARGE)


def tearDownModule():
    channel.close()
    assert server.end() == 0


def call(method, request=None, answer=None, metadata=(), timeout=PATIENCE, on=None, **options):
    request = getattr(pb, method + "Request")() if request is None else request
    answer = answer or getattr(pb, method + "Response")
    return (on or channel).unary_unary(SERVICE + method, type(request).SerializeToString, answer.FromString)(
        request, metadata=metadata, timeout=timeout, **options)


def asked(model="echo", raw=(FLOATS,), inputs=(("X", "FP32", (1, 4)),), **more):
    request = pb.ModelInferRequest(model_name=model, raw_input_contents=list(raw), **more)
    for name, datatype, shape in inputs:
        request.inputs.add(name=name, datatype=datatype, shape=shape)
    return request


class Grpc(unittest.TestCase):
    def fails(self, code, part, method, request=None, **how):
        with self.assertRaises(grpc.RpcError) as raised:
            call(method, request, **how)
        self.assertEqual(raised.exception.code(), code, raised.exception.details())
        self.assertIn(part, raised.exception.details())


class Methods(Grpc):
    def test_health(self):
        self.assertTrue(call("ServerLive").live)
        self.assertTrue(call("ServerReady").ready)
        for name, version, ready in (("many", "2", True), ("many", "9", False), ("none", "", False)):
            self.assertEqual(call("ModelReady", pb.ModelReadyRequest(name=name, version=version)).ready, ready)
        check = channel.unary_unary("/grpc.health.v1.Health/Check", health_pb2.HealthCheckRequest.SerializeToString,
                                    health_pb2.HealthCheckResponse.FromString)
        self.assertEqual(check(health_pb2.HealthCheckRequest()).status, 1)
        with self.assertRaises(grpc.RpcError) as raised:
            check(health_pb2.HealthCheckRequest(service="none"))
        self.assertEqual(raised.exception.code(), CODE.NOT_FOUND)

    def test_metadata(self):
        said = call("ServerMetadata")
        self.assertTrue(said.name and said.version and "model_repository" in said.extensions)
        said = call("ModelMetadata", pb.ModelMetadataRequest(name="many"))
        self.assertEqual(sorted(said.versions, key=int), ["1", "2", "30"])
        self.assertEqual((said.inputs[0].name, said.inputs[0].datatype, list(said.inputs[0].shape)), ("X", "FP32", [-1, 4]))
        config = call("ModelConfig", pb.ModelConfigRequest(name="echo")).config
        self.assertEqual((config.name, config.max_batch_size, config.backend, list(config.input[0].dims)), ("echo", 8, "synthetic", [4]))
        self.assertEqual(config.input[0].data_type, pb.TYPE_FP32)

    def test_statistics(self):
        ask = lambda: call("ModelStatistics", pb.ModelStatisticsRequest(name="echo")).model_stats[0]
        before = ask()
        call("ModelInfer", asked())
        after = ask()
        self.assertEqual((after.name, after.version), ("echo", "1"))
        self.assertEqual(after.inference_count - before.inference_count, 1)
        self.assertEqual(after.inference_stats.success.count - before.inference_stats.success.count, 1)
        self.assertGreater(after.inference_stats.success.ns, before.inference_stats.success.ns)
        self.assertGreater(len(call("ModelStatistics").model_stats), 5)

    def test_repository(self):
        index = {(m.name, m.version): m.state for m in call("RepositoryIndex").models}
        self.assertEqual(index["echo", "1"], "READY")
        load = pb.RepositoryModelLoadRequest(model_name="inline")
        load.parameters["config"].string_param = json.dumps({"backend": "synthetic", "max_batch_size": 0})
        load.parameters["file:1/model.json"].bytes_param = json.dumps(
            {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 4]}], "outputs": [{"name": "Z", "datatype": "FP32", "shape": [1, 4]}]}).encode()
        call("RepositoryModelLoad", load)
        self.assertEqual(call("ModelInfer", asked("inline")).outputs[0].name, "Z")
        unload = pb.RepositoryModelUnloadRequest(model_name="inline")
        unload.parameters["unload_dependents"].bool_param = False
        call("RepositoryModelUnload", unload)
        server.wait_for(lambda: server.ask("GET", "/v2/models/inline/ready").code != 200)
        self.fails(CODE.NOT_FOUND, "failed to load 'none'", "RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name="none"))
        load = pb.RepositoryModelLoadRequest(model_name="echo")
        load.parameters["config"].string_param = '"max_batch_size": 8'
        self.fails(CODE.INVALID_ARGUMENT, "failed to load 'echo'", "RepositoryModelLoad", load)

    def test_settings(self):
        change = pb.TraceSettingRequest()
        change.settings["trace_rate"].value.append("7")
        self.assertEqual(list(call("TraceSetting", change).settings["trace_rate"].value), ["7"])
        clear = pb.TraceSettingRequest()
        clear.settings["trace_rate"].SetInParent()
        self.assertNotEqual(list(call("TraceSetting", clear).settings["trace_rate"].value), ["7"])
        change = pb.LogSettingsRequest()
        change.settings["log_verbose_level"].uint32_param = 1
        self.assertEqual(call("LogSettings", change).settings["log_verbose_level"].uint32_param, 1)

    def test_shared_memory(self):
        key = "/weir-test-grpc-%d" % os.getpid()
        with open("/dev/shm" + key, "w+b") as file:
            self.addCleanup(os.unlink, "/dev/shm" + key)
            file.truncate(4096)
            memory = mmap.mmap(file.fileno(), 4096)
        memory[:16] = FLOATS
        call("SystemSharedMemoryRegister", pb.SystemSharedMemoryRegisterRequest(name="grpc", key=key, byte_size=4096))
        self.assertEqual(call("SystemSharedMemoryStatus").regions["grpc"].byte_size, 4096)
        request = asked(raw=())
        for tensor, offset in ((request.inputs[0], 0), (request.outputs.add(name="Y"), 64)):
            tensor.parameters["shared_memory_region"].string_param = "grpc"
            tensor.parameters["shared_memory_byte_size"].int64_param = 16
            tensor.parameters["shared_memory_offset"].int64_param = offset
        answer = call("ModelInfer", request)
        self.assertEqual(list(answer.outputs[0].shape), [1, 4])
        self.assertEqual(memory[64:80], FLOATS)
        # an output in memory keeps its place among those that are in the answer
        request = asked("two", (struct.pack("<q", 5), struct.pack("<q", 6)), [("A", "INT64", (1, 1)), ("B", "INT64", (1, 1))])
        tensor = request.outputs.add(name="A2")
        tensor.parameters["shared_memory_region"].string_param = "grpc"
        tensor.parameters["shared_memory_byte_size"].int64_param = 8
        request.outputs.add(name="B2")
        self.assertEqual(list(call("ModelInfer", request).raw_output_contents), [b"", struct.pack("<q", 6)])
        call("SystemSharedMemoryUnregister", pb.SystemSharedMemoryUnregisterRequest())
        self.assertEqual(len(call("SystemSharedMemoryStatus").regions), 0)
        self.assertEqual(len(call("CudaSharedMemoryStatus").regions), 0)

    def test_an_unknown_method_is_unimplemented(self):
        self.fails(CODE.UNIMPLEMENTED, "", "NoMethod", pb.ServerLiveRequest(), answer=pb.ServerLiveResponse)


class Inference(Grpc):
    def test_raw(self):
        answer = call("ModelInfer", asked(id="a\u00e9"))
        self.assertEqual((answer.model_name, answer.model_version, answer.id), ("echo", "1", "a\u00e9"))
        self.assertEqual((answer.outputs[0].name, answer.outputs[0].datatype, list(answer.outputs[0].shape)), ("Y", "FP32", [1, 4]))
        self.assertEqual(list(answer.raw_output_contents), [FLOATS])

    def test_all_types_raw(self):
        answer = call("ModelInfer", asked("types", cases.BINARY.values(), [("in_" + t, t, (1, 2)) for t in cases.BINARY]))
        self.assertEqual({o.name: raw for o, raw in zip(answer.outputs, answer.raw_output_contents)}, {"out_" + t: b for t, b in cases.BINARY.items()})

    def test_typed_contents(self):
        fields = {"BOOL": "bool", "UINT8": "uint", "UINT16": "uint", "UINT32": "uint", "UINT64": "uint64", "INT8": "int", "INT16": "int",
                  "INT32": "int", "INT64": "int64", "FP32": "fp32", "FP64": "fp64", "BYTES": "bytes"}
        kinds = dict(zip(fields, "?BHIQbhiqfd"))
        # the half types have no typed contents, so the request as a whole is refused
        request = asked("types", (), [("in_" + t, t, (1, 2)) for t in cases.BINARY])
        for tensor in request.inputs:
            if tensor.datatype in fields:
                values = [v.encode() if isinstance(v, str) else v for v in cases.JSON_TYPES[tensor.datatype]]
                getattr(tensor.contents, fields[tensor.datatype] + "_contents").extend(values)
        self.fails(CODE.INVALID_ARGUMENT, "", "ModelInfer", request)
        # without them each of the other types comes back
        for datatype, field in fields.items():
            request = asked("of_" + datatype, (), [("X", datatype, (1, 2))])
            values = [v.encode() if isinstance(v, str) else v for v in cases.JSON_TYPES[datatype]]
            getattr(request.inputs[0].contents, field + "_contents").extend(values)
            raw = call("ModelInfer", request).raw_output_contents[0]
            wanted = b"".join(struct.pack("<I", len(v)) + v for v in values) if datatype == "BYTES" else struct.pack("<2" + kinds[datatype], *values)
            self.assertEqual(raw, wanted, datatype)
        request = asked("two", (), [("A", "INT64", (2, 1)), ("B", "INT64", (2, 1))])
        request.inputs[0].contents.int64_contents.extend([1, -2])
        request.inputs[1].contents.int64_contents.extend([3, 4])
        answer = call("ModelInfer", request)
        self.assertEqual([struct.unpack("<2q", raw) for raw in answer.raw_output_contents], [(1, -2), (3, 4)])

    def test_parameters_as_both_clients_send_them(self):
        request = asked()
        request.parameters["priority"].uint64_param = 1
        request.parameters["timeout"].int64_param = 60000000
        request.parameters["mine"].string_param = "x"
        request.parameters["mine too"].double_param = 1.5
        request.inputs[0].parameters["binary_data_size"].int64_param = 16  # KServe's, which means nothing here
        request.outputs.add(name="Y").parameters["binary_data"].bool_param = True
        request.parameters["triton_enable_empty_final_response"].bool_param = True
        self.assertEqual(list(call("ModelInfer", request).raw_output_contents), [FLOATS])

    def test_what_is_wrong_has_its_code(self):
        wrong = CODE.INVALID_ARGUMENT
        request = asked()
        request.parameters["triton_final_response"].bool_param = True
        self.fails(wrong, "'triton_final_response' is reserved for Triton usage", "ModelInfer", request)
        for code, part, request in (
                (CODE.NOT_FOUND, "none", asked("none")), (CODE.NOT_FOUND, "7", asked(model_version="7")),
                (wrong, "", asked(model_version="x")), (wrong, "X", asked(raw=())), (wrong, "X", asked(raw=(FLOATS[:12],))),
                (wrong, "", asked(raw=(FLOATS, FLOATS))), (wrong, "Z", asked(inputs=[("Z", "FP32", (1, 4))])),
                (wrong, "FP32", asked(inputs=[("X", "INT32", (1, 4))])), (wrong, "X", asked(inputs=[("X", "FP32", (4, 1))])),
                (wrong, "8", asked(raw=(FLOATS * 9,), inputs=[("X", "FP32", (9, 4))])), (wrong, "", asked(inputs=[("X", "FP32", (-1, 4))]))):
            with self.subTest(str(request)):
                self.fails(code, part, "ModelInfer", request)
        request = asked()
        request.inputs[0].contents.fp32_contents.extend(ROW)
        self.fails(wrong, "X", "ModelInfer", request)
        request = asked()
        request.outputs.add(name="Z")
        self.fails(wrong, "Z", "ModelInfer", request)

    def test_a_run_that_fails_is_an_internal_error(self):
        codes = []
        for _ in range(4):  # every second run of this model fails
            try:
                call("ModelInfer", asked("fails", (b"abcd",), [("X", "FP32", (1, 1))]))
                codes.append(CODE.OK)
            except grpc.RpcError as error:
                codes.append(error.code())
        self.assertEqual(sorted(codes, key=str), [CODE.INTERNAL] * 2 + [CODE.OK] * 2)

    def test_bytes_that_are_no_message(self):
        with self.assertRaises(grpc.RpcError) as raised:
            channel.unary_unary(SERVICE + "ModelInfer", lambda b: b, lambda b: b)(b"\xff\xff\xff")
        self.assertIn(raised.exception.code(), (CODE.INVALID_ARGUMENT, CODE.INTERNAL))

    def test_deadlines(self):
        slow = asked("slow", (b"abcd",), [("X", "FP32", (1, 1))])
        # the server refuses what it can't answer in time, unless the client's own clock is first
        with self.assertRaises(grpc.RpcError) as raised:
            call("ModelInfer", slow, timeout=.1)
        self.assertIn(raised.exception.code(), (CODE.RESOURCE_EXHAUSTED, CODE.DEADLINE_EXCEEDED))
        slow.parameters["timeout"].int64_param = 1
        self.fails(CODE.RESOURCE_EXHAUSTED, "slow", "ModelInfer", slow)
        self.assertEqual(call("ModelInfer", asked(), timeout=2**31).id, "")

    def test_a_call_is_cancelled(self):
        slow = asked("slow", (b"abcd",), [("X", "FP32", (1, 1))])
        infer = channel.unary_unary(SERVICE + "ModelInfer", pb.ModelInferRequest.SerializeToString, pb.ModelInferResponse.FromString)
        calls = [infer.future(slow) for _ in range(3)]
        for one in calls:
            one.cancel()
        self.assertEqual(list(infer(slow).raw_output_contents), [b"abcd"])

    def test_large_tensors(self):
        data = os.urandom(64 << 20)
        answer = call("ModelInfer", asked("flat", (data,), [("X", "INT32", (16 << 20,))]))
        self.assertEqual(answer.raw_output_contents[0], data)

    def test_compressed_requests(self):
        for compression in (grpc.Compression.Gzip, grpc.Compression.Deflate):
            with grpc.insecure_channel("127.0.0.1:%d" % server.port, compression=compression) as packed:
                try:
                    self.assertEqual(list(call("ModelInfer", asked(), on=packed).raw_output_contents), [FLOATS])
                except grpc.RpcError as error:
                    self.assertEqual(error.code(), CODE.UNIMPLEMENTED)

    def test_many_calls_on_one_connection(self):
        infer = channel.unary_unary(SERVICE + "ModelInfer", pb.ModelInferRequest.SerializeToString, pb.ModelInferResponse.FromString)
        calls = [infer.future(asked(raw=(struct.pack("<4f", i, 0, 0, 0),), id=str(i))) for i in range(300)]
        for i, one in enumerate(calls):
            answer = one.result()
            self.assertEqual((answer.id, struct.unpack("<4f", answer.raw_output_contents[0])[0]), (str(i), i))


class Stream(Grpc):
    def stream(self, requests, metadata=()):
        return channel.stream_stream(SERVICE + "ModelStreamInfer", pb.ModelInferRequest.SerializeToString,
                                     pb.ModelStreamInferResponse.FromString)(iter(requests), metadata=metadata, timeout=PATIENCE)

    def test_each_request_has_its_answer_in_order(self):
        answers = list(self.stream([asked(id=str(i), raw=(struct.pack("<4f", i, 0, 0, 0),)) for i in range(20)]))
        self.assertEqual([a.infer_response.id for a in answers], [str(i) for i in range(20)])
        self.assertEqual({a.error_message for a in answers}, {""})
        # clients read it without asking whether it is there
        self.assertTrue(all(a.infer_response.parameters["triton_final_response"].bool_param for a in answers))

    def test_a_client_may_send_all_before_it_reads(self):
        answers = self.stream([asked("steady", id=str(i)) for i in range(500)])
        self.assertEqual([(a.infer_response.id, a.error_message) for a in answers], [(str(i), "") for i in range(500)])

    def test_an_answer_comes_before_the_next_request(self):
        requests = queue.Queue()
        answers = self.stream(iter(requests.get, None))
        for i in range(3):
            requests.put(asked(id=str(i)))
            self.assertEqual(next(answers).infer_response.id, str(i))
        requests.put(None)
        self.assertEqual(list(answers), [])

    def test_a_failed_request_does_not_end_the_stream(self):
        request = asked(id="3")
        request.parameters["triton_enable_empty_final_response"].bool_param = True
        answers = list(self.stream([asked(id="1"), asked("none", id="2"), request]))
        self.assertEqual([a.infer_response.id for a in answers], ["1", "2", "3"])
        self.assertEqual([bool(a.error_message) for a in answers], [False, True, False])
        self.assertIn("none", answers[1].error_message)

    def test_a_failed_request_ends_the_stream_where_that_is_asked(self):
        answers = self.stream([asked("none")], metadata=(("triton_grpc_error", "true"),))
        with self.assertRaises(grpc.RpcError) as raised:
            list(answers)
        self.assertEqual(raised.exception.code(), CODE.NOT_FOUND)

    def test_an_open_stream_keeps_no_room_for_what_it_has_answered(self):
        def memory():
            with open("/proc/%d/status" % server.process.pid, encoding="ascii") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
        requests, answers, before, streams, mib = [], [], 0, 64, 1 << 20
        for _ in range(streams):
            requests.append(queue.Queue())
            answers.append(self.stream(iter(requests[-1].get, None)))
            requests[-1].put(asked(raw=(bytes(mib),)))
            self.assertIn("X", next(answers[-1]).error_message)
            before = before or memory()
        self.assertLess(memory() - before, streams * mib / 4 / 1024, "KiB, where streams that keep all would have 64 MiB")
        for one in requests:
            one.put(None)

    def test_a_stream_is_cancelled(self):
        answers = self.stream([asked("slow", (b"abcd",), [("X", "FP32", (1, 1))])] * 3)
        answers.cancel()
        self.assertTrue(call("ServerLive").live)


if __name__ == "__main__":
    unittest.main()
