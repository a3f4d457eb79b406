#!/usr/bin/env python3
"""ResNet-50 with random weights, as a load: resnet.py infer|train|calibrate [OPTIONS], see program.py.

infer answers requests of one image in half precision: the image goes to the device, a CUDA graph runs the network, the
scores come back.  train does steps of a batch of 64 synthetic images with automatic mixed precision (half, loss
scaling) and SGD with momentum.  cuDNN chooses by its heuristics, not by timing, so that every run has the same kernels.
"""
import torch
import torchvision

import program


def inference():
    model = torchvision.models.resnet50().half().cuda().eval()
    sent = torch.randn(1, 3, 224, 224).half().pin_memory()
    images, stream = torch.zeros(1, 3, 224, 224, dtype=torch.half, device='cuda'), torch.cuda.Stream()
    torch.cuda.synchronize()  # the stream does not wait for the one that filled these
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(5):
            model(images)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            scores = model(images)
    answer = torch.zeros(1, 1000, dtype=torch.half).pin_memory()

    def request():
        with torch.cuda.stream(stream):
            images.copy_(sent, non_blocking=True)
            graph.replay()
            answer.copy_(scores, non_blocking=True)
        stream.synchronize()

    # A graph keeps no memory, so the model stays.
    request.model, request.graph, request.stream = model, graph, stream
    for _ in range(20):
        request()
    return request


def training(batch):
    model = torchvision.models.resnet50().cuda().train()
    loss_of, scaler = torch.nn.CrossEntropyLoss(), torch.amp.GradScaler('cuda')
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(batch, 3, 224, 224, device='cuda')
    labels = torch.randint(1000, (batch,), device='cuda')
    ends = [torch.cuda.Event(), torch.cuda.Event()]
    ends[1].record()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast('cuda', dtype=torch.half):
            loss = loss_of(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        ends[0].record()
        ends.reverse()
        ends[0].synchronize()

    for _ in range(8):
        step()
    torch.cuda.synchronize()
    return step


def main():
    args = program.options(['infer', 'train', 'calibrate'], batch=(64, 'images a step of training'))
    torch.backends.cudnn.benchmark = False
    torch.manual_seed(args.seed)
    facts = {'torch': torch.__version__, 'device': torch.cuda.get_device_name()}
    if args.role == 'train':
        program.work(args, training(args.batch), batch=args.batch, **facts)
    elif args.role == 'infer':
        program.serve(args, inference(), **facts)
    else:
        program.calibrate(inference(), **facts)


if __name__ == '__main__':
    main()
