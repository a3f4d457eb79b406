"""Text generation's inner loop: OPT-125m with random weights, fp16, eight prompts of 256 tokens."""
import torch
from transformers import OPTConfig, OPTForCausalLM

model = OPTForCausalLM(OPTConfig()).half().cuda().eval()
tokens = torch.randint(0, 50000, (8, 256), device="cuda")
with torch.inference_mode():
    for _ in range(20):
        logits = model(tokens).logits
torch.cuda.synchronize()
print(tuple(logits.shape))
