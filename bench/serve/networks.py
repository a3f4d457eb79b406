"""Networks of the usual kinds as models for weir serve: networks.py REPOSITORY [NAME...]

	resnet50       3 x 224 x 224 in, 1,000 out, FP16          resnet50_fp32  the same in FP32, without TF32
	encoder        128 words of a BERT-base, FP16             ocr            a line of 32 x 320, FP16
	mlp            four layers of 512 x 512, FP32, without TF32

Weights are random, so nothing is downloaded.  PyTorch exports each to ONNX, and `check` compares a server's answers with
PyTorch's own.
"""
import pathlib
import sys

import torch
from torch import nn

ROWS = 16  # of the largest batch


class Layer(nn.Module):
    """One layer of an encoder, written out so that each version of the exporter takes it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = (t.reshape(b, n, self.heads, w // self.heads).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        a = torch.softmax(q @ k.transpose(-1, -2) * (w // self.heads) ** -.5, -1) @ v
        x = self.first(x + self.out(a.transpose(1, 2).reshape(b, n, w)))
        return self.second(x + self.down(nn.functional.gelu(self.up(x))))


class Encoder(nn.Module):
    def __init__(self, words=30522, length=128, width=768, layers=12, heads=12):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(length, width) * .02)
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(layers)])

    def forward(self, x):
        return self.layers(self.words(x) + self.places)[:, 0]


class Lines(nn.Module):
    """Text in a picture of a line: convolutions, two layers of an encoder, letters."""

    def __init__(self, letters=6625, width=192):
        super().__init__()
        widths = [(3, 32), (32, 64), (64, 128), (128, width)]
        steps = [nn.Sequential(nn.Conv2d(a, b, 3, stride=(2, 2 if i < 3 else 1), padding=1), nn.BatchNorm2d(b), nn.Hardswish())
                 for i, (a, b) in enumerate(widths)]
        self.picture, self.layers = nn.Sequential(*steps), nn.Sequential(Layer(width, 8), Layer(width, 8))
        self.letters = nn.Linear(width, letters)

    def forward(self, x):
        return self.letters(self.layers(self.picture(x).mean(2).transpose(1, 2)))


def resnet50():
    import torchvision
    return torchvision.models.resnet50(weights=None)


def mlp():
    return nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(512, 512), nn.ReLU())])


# The maker, the type, the shape of a row, deadline in us, largest relative error
NETWORKS = {"resnet50": (resnet50, torch.float16, (3, 224, 224), 25000, 2e-2),
            "encoder": (Encoder, torch.float16, (128,), 40000, 2e-2),
            "ocr": (Lines, torch.float16, (3, 32, 320), 10000, 2e-2),
            "resnet50_fp32": (resnet50, torch.float32, (3, 224, 224), 25000, 1e-3),
            "mlp": (mlp, torch.float32, (512,), 5000, 1e-3)}


def network(name):
    torch.manual_seed(len(name))
    make, dtype = NETWORKS[name][:2]
    return make().eval().to("cuda", dtype)


def inputs(name, rows, seed=0):
    made = torch.Generator("cuda").manual_seed(seed)
    _, dtype, shape, *_ = NETWORKS[name]
    if name == "encoder":
        return torch.randint(0, 30522, (rows, *shape), generator=made, device="cuda")
    return torch.rand((rows, *shape), generator=made, device="cuda").to(dtype)


def export(name, repository, to=None, deadline=False, graphs=True):
    folder = pathlib.Path(repository) / (to or name) / "1"
    folder.mkdir(parents=True, exist_ok=True)
    _, dtype, shape, deadline_us, _ = NETWORKS[name]
    with torch.no_grad():
        torch.onnx.export(network(name), (inputs(name, 2),), str(folder / "model.onnx"), input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "rows"}, "y": {0: "rows"}}, opset_version=17, dynamo=False)
    plain = 'gpu_execution_accelerator: [ { name: "cuda" parameters { key: "use_tf32" value: "0" } } ]' if dtype == torch.float32 else ""
    parameter = 'parameters { key: "%s" value { string_value: "%s" } }\n'
    (folder.parent / "config.pbtxt").write_text(
        'backend: "onnxruntime"\nmax_batch_size: %d\ndynamic_batching { }\ninstance_group { kind: KIND_GPU }\n' % ROWS +
        ("optimization { execution_accelerators { %s } }\n" % plain if plain else "") +
        (parameter % ("weir.deadline_us", deadline_us) if deadline else "") + parameter % ("graphs", "01"[graphs]))


if __name__ == "__main__":
    for name in sys.argv[2:] or NETWORKS:
        export(name, sys.argv[1])
