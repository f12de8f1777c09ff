"""Gradients against causes: does the gradient ranking match ablation?"""
