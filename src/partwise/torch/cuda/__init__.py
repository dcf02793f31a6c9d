"""The oracles on CUDA devices, in Triton: see `partwise.torch.cuda.chain` and its neighbours, one for each structure."""
