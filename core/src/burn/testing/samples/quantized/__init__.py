"""Samples of ops of quantized tensors."""
