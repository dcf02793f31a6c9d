"""The kernels of `partwise.torch` on a CUDA device: ``python -m benchmarks.torch_gpu``."""
