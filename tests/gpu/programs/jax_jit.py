"""JAX, jit: XLA's own launcher and its command buffers."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp


@jax.jit
def f(x):
    return jnp.tanh(x @ x).sum(axis=0) + jnp.sort(x[0])


x = jnp.ones((256, 256))
for _ in range(50):
    y = f(x)
print(y.block_until_ready().shape)
