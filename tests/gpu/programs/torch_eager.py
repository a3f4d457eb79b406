"""PyTorch, eager: a small network, forward and backward."""
import torch

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 30 * 30, 10)
).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(20):
    x = torch.randn(8, 3, 32, 32, device="cuda")
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(loss.item() == loss.item())
