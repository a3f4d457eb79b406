"""Networks that look at pictures, with random weights: vision.py vit|unet|resnet [[--trace] FILE].

vit     six training steps of a small vision transformer, batch 8
unet    six denoising steps of a U-Net with grouped and strided convolutions, in half precision
resnet  four training steps of ResNet-50 in FP32, batch 32: the GPU is the bound, backward runs on another thread

With a FILE, torch.profiler looks on and writes what it counts as FLOPs of each operator (with_flops), or its trace.
"""
import collections
import json
import sys

import torch
import torchvision


def trained(model, batch, size, classes):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(batch, 3, size, size, device="cuda")
    labels = torch.randint(classes, (batch,), device="cuda")

    def step():
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


def vit():
    model = torchvision.models.VisionTransformer(image_size=224, patch_size=16, num_layers=4, num_heads=6, hidden_dim=384,
                                                 mlp_dim=1536, num_classes=100)
    return trained(model.cuda().train(), 8, 224, 100), 6


def unet():
    def block(i, o, **how):
        return torch.nn.Sequential(torch.nn.Conv2d(i, o, 3, padding=1, **how), torch.nn.GroupNorm(8, o), torch.nn.SiLU())

    widths = [64, 128, 256]
    down = torch.nn.ModuleList([block(4, 64), block(64, 128, stride=2), block(128, 256, stride=2, groups=4)]).half().cuda()
    up = torch.nn.ModuleList([block(2 * b, a) for a, b in zip([8, 64, 128], widths)][::-1]).half().cuda()
    noise = torch.randn(2, 4, 128, 128, device="cuda", dtype=torch.half)

    def step():
        with torch.inference_mode():
            x, kept = noise, []
            for layer in down:
                x = layer(x)
                kept.append(x)
            for layer, other in zip(up, kept[::-1]):
                x = layer(torch.cat([torch.nn.functional.interpolate(x, other.shape[-2:]), other], 1))
            noise.sub_(0.1 * x[:, :4])
    return step, 6


def resnet():
    return trained(torchvision.models.resnet50().cuda().train(), 32, 224, 1000), 4


def profiled(step, steps, out, trace):
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, record_shapes=True, with_flops=not trace) as profiler:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    if trace:
        return profiler.export_chrome_trace(out)
    counts, flops = collections.Counter(), collections.Counter()
    for event in profiler.events():
        if event.flops:
            counts[event.name] += 1
            flops[event.name] += event.flops
    with open(out, "w") as f:
        json.dump({name: {"count": counts[name], "flops": flops[name]} for name in sorted(flops)}, f, indent=1)


def main():
    torch.manual_seed(1)
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    step, steps = {"vit": vit, "unet": unet, "resnet": resnet}[sys.argv[1]]()
    if sys.argv[2:]:
        return profiled(step, steps, sys.argv[-1], "--trace" in sys.argv)
    for i in range(steps):
        with torch.profiler.record_function("step %d" % i):
            step()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
