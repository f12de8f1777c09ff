"""Two replacement models of RelP, written by hand."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def relp_norm(x, weight, eps, centred, bias=None):
    x = x - x.mean(-1, keepdim=True) if centred else x
    y = weight * x * (x.pow(2).mean(-1, keepdim=True) + eps).rsqrt().detach()
    return y if bias is None else y + bias


def attend(q, k, v, window=None):
    """Causal attention with a constant pattern; [heads, T, d]."""
    t = q.shape[1]
    mask = torch.ones(t, t, dtype=torch.bool).tril()
    if window:
        mask &= ~torch.ones(t, t, dtype=torch.bool).tril(-window)
    scores = (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
    return scores.softmax(-1).detach() @ v


def llama_by_hand(model, ids):
    """(logits, heads' outputs, neurons, MLP outputs) of a Llama replacement model, from its weights alone."""
    c, w = model.config, model.model
    T, hd = len(ids), model.config.head_dim
    frequency = c.rope_parameters["rope_theta"] ** (-torch.arange(0, hd, 2, dtype=torch.float64) / hd)
    angle = torch.arange(T, dtype=torch.float64)[:, None] * frequency.float().double()
    cos, sin = (f(torch.cat([angle, angle], -1).float()).double() for f in (torch.cos, torch.sin))

    def rotate(x):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    x, heads, neurons, mlps = w.embed_tokens.weight[list(ids)], [], [], []
    for layer in w.layers:
        n = relp_norm(x, layer.input_layernorm.weight, c.rms_norm_eps, False)
        a = layer.self_attn
        q, k, v = (F.linear(n, p.weight, p.bias).view(T, -1, hd).transpose(0, 1) for p in (a.q_proj, a.k_proj, a.v_proj))
        repeat = c.num_attention_heads // c.num_key_value_heads
        z = attend(rotate(q), rotate(k).repeat_interleave(repeat, 0), v.repeat_interleave(repeat, 0)).transpose(0, 1)
        heads.append(z)
        x = x + F.linear(z.reshape(T, -1), a.o_proj.weight, a.o_proj.bias)
        n = relp_norm(x, layer.post_attention_layernorm.weight, c.rms_norm_eps, False)
        m = layer.mlp
        gate, up = F.linear(n, m.gate_proj.weight, m.gate_proj.bias), F.linear(n, m.up_proj.weight, m.up_proj.bias)
        act = gate * torch.sigmoid(gate).detach()
        product = act * up
        half = 0.5 * product + (0.5 * product).detach()
        neurons.append(half)
        mlps.append(F.linear(half, m.down_proj.weight, m.down_proj.bias))
        x = x + mlps[-1]
    return model.lm_head(relp_norm(x, w.norm.weight, c.rms_norm_eps, False)), heads, neurons, mlps


def gpt2_by_hand(model, ids):
    """The same for GPT-2."""
    w, T = model.transformer, len(ids)
    H = model.config.n_head
    x, heads, neurons, mlps = w.wte.weight[list(ids)] + w.wpe.weight[:T], [], [], []
    for layer in w.h:
        n = relp_norm(x, layer.ln_1.weight, layer.ln_1.eps, True, layer.ln_1.bias)
        fused = n @ layer.attn.c_attn.weight + layer.attn.c_attn.bias
        q, k, v = (part.view(T, H, -1).transpose(0, 1) for part in fused.chunk(3, -1))
        heads.append(attend(q, k, v).transpose(0, 1))
        x = x + heads[-1].reshape(T, -1) @ layer.attn.c_proj.weight + layer.attn.c_proj.bias
        n = relp_norm(x, layer.ln_2.weight, layer.ln_2.eps, True, layer.ln_2.bias)
        u = n @ layer.mlp.c_fc.weight + layer.mlp.c_fc.bias
        gelu = 0.5 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (u + 0.044715 * u**3)))
        neurons.append(u * gelu.detach())
        mlps.append(neurons[-1] @ layer.mlp.c_proj.weight + layer.mlp.c_proj.bias)
        x = x + mlps[-1]
    return model.lm_head(relp_norm(x, w.ln_f.weight, w.ln_f.eps, True, w.ln_f.bias)), heads, neurons, mlps
