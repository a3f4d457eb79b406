#!/usr/bin/env python3
"""A model whose shapes change from step to step: work.py opt|llama|resnet [--steps N] [--seed N].

opt     OPT of 125M parameters with random weights answers batches of texts of different lengths, in half precision
llama   a Llama of 300M parameters is trained with AdamW on texts of different lengths, in bfloat16
resnet  ResNet-50 is trained with batches of 16 to 128 images and automatic mixed precision

Prints one line of JSON: whether it came to its end, the most bytes that its tensors had at once (as the framework counts
them), and how long steps took.  The same seed gives the same shapes in the same order, whatever allocates.
"""
import argparse
import json
import random
import statistics
import time

import torch


def opt(draw):
    import transformers
    model = transformers.OPTForCausalLM(transformers.OPTConfig()).half().cuda().eval()

    def step():
        texts = torch.randint(4, 50000, (draw.randint(1, 8), draw.randint(64, 1024)), device='cuda')
        with torch.no_grad():
            return model(texts, use_cache=True).logits[:, -1].argmax(-1)
    return step


def llama(draw):
    import transformers
    config = transformers.LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=16, num_attention_heads=16,
                                      num_key_value_heads=16, vocab_size=32000, max_position_embeddings=1024)
    model = transformers.LlamaForCausalLM(config).bfloat16().cuda().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step():
        texts = torch.randint(4, 32000, (draw.randint(1, 6), draw.randint(64, 1024)), device='cuda')
        optimizer.zero_grad(set_to_none=True)
        model(texts, labels=texts, use_cache=False).loss.backward()
        optimizer.step()
    return step


def resnet(draw):
    import torchvision
    model = torchvision.models.resnet50().cuda().train()
    loss_of, scaler = torch.nn.CrossEntropyLoss(), torch.amp.GradScaler('cuda')
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        batch = draw.randint(16, 128)
        images, labels = torch.randn(batch, 3, 224, 224, device='cuda'), torch.randint(1000, (batch,), device='cuda')
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast('cuda', dtype=torch.half):
            loss = loss_of(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('work', choices=['opt', 'llama', 'resnet'])
    parser.add_argument('--steps', type=int, default=60)
    parser.add_argument('--warm', type=int, default=10, help='steps that are not timed')
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.backends.cudnn.benchmark = False
    times, said = [], {'work': args.work, 'ok': False}
    try:
        step = globals()[args.work](random.Random(args.seed))
        for i in range(args.warm + args.steps):
            begun = time.perf_counter()
            step()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - begun)
        said['ok'] = True
    except torch.OutOfMemoryError as e:
        said['error'] = str(e)[:200]
    except RuntimeError as e:  # of a library that allocates by itself
        said['error'] = str(e)[:200]
    times = times[args.warm:]
    said.update(steps=len(times), live_peak=torch.cuda.max_memory_allocated(), reserved_peak=torch.cuda.max_memory_reserved())
    if said['ok']:
        said.update(median_ms=1e3 * statistics.median(times), total_ms=1e3 * sum(times), times_ms=[round(1e3 * t, 3) for t in times])
    print(json.dumps(said), flush=True)


if __name__ == '__main__':
    main()
