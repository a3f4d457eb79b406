"""Steps of training whose products are in TF32.  The twin has them in BF16."""

import torch

import problem

STEPS = 20


def make(fixed):
    torch.set_float32_matmul_precision("high")
    model = torch.nn.Sequential(*(torch.nn.Linear(4096, 4096) for _ in range(4))).cuda()
    inputs = torch.randn(4096, 4096, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    @torch.enable_grad()
    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=fixed):
            loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()

    return step


if __name__ == "__main__":
    problem.main()
