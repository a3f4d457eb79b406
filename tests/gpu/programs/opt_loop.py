"""OPT-125m with weights of chance, prompts of several lengths again and again, in half precision."""
import sys

import torch

try:
    from transformers import OPTConfig, OPTForCausalLM

    model = OPTForCausalLM(OPTConfig())  # the default is the 125 million one
    call = lambda tokens: model(tokens, use_cache=False)
except ImportError:  # the same sizes without the package
    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, activation="relu")
    model = torch.nn.Sequential(
        torch.nn.Embedding(50272, 768),
        torch.nn.TransformerEncoder(layer, 12),
        torch.nn.Linear(768, 50272, bias=False),
    )
    call = model
rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
model = model.cuda().half().eval()
prompts = [torch.randint(0, 50000, (4, n), device="cuda") for n in (32, 64, 128, 256, 100)]
with torch.no_grad():
    for i in range(rounds):
        call(prompts[i % len(prompts)])
    torch.cuda.synchronize()
