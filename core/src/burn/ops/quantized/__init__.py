"""Ops of quantized tensors."""
