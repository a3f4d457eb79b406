"""A layer of Llama with PyTorch's MLP and with Weir's: how long it takes, and how far the outputs are apart."""
import torch
from transformers import LlamaConfig, LlamaModel

from weir import kernels


class FusedMLP(torch.nn.Module):
    def __init__(self, mlp):
        super().__init__()
        in_turn = torch.stack((mlp.gate_proj.weight, mlp.up_proj.weight), 1)
        self.gate_up = in_turn.flatten(0, 1)
        self.down = mlp.down_proj.weight

    def forward(self, x):
        x = kernels.linear(x, self.gate_up, activation="swiglu")
        return kernels.linear(x, self.down)


def run(model, mlp, x, times=20):
    model.layers[0].mlp = mlp
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        y = model(inputs_embeds=x, use_cache=False).last_hidden_state
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / times, y


torch.set_grad_enabled(False)
torch.manual_seed(0)
config = LlamaConfig(hidden_size=4096, intermediate_size=14336, num_attention_heads=32,
                     num_key_value_heads=8, num_hidden_layers=1, vocab_size=1000)
model = LlamaModel(config).to("cuda", torch.bfloat16).eval()
x = torch.randn(2, 2048, 4096, device="cuda", dtype=torch.bfloat16)

mlp = model.layers[0].mlp
fused = FusedMLP(mlp)
times = {mlp: [], fused: []}
for which in [mlp, fused] * 5:
    ms, output = run(model, which, x)
    times[which].append(ms)
    expected, y = (output, None) if which is mlp else (expected, output)
before, after = (sorted(t)[2] for t in times.values())
print(f"PyTorch {before:.2f} ms, with Weir's MLP {after:.2f} ms")
print(f"relative error {float((y - expected).norm() / expected.norm()):.1e}")
