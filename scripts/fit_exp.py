#!/usr/bin/env python3
"""Fits the polynomial of src/kernels/exp_constants.h: e^r = 1 + r + r^2 q(r), q of degree 4, least maximal relative error on
[-ln 2 / 2, ln 2 / 2]. Needs numpy. Prints the coefficients rounded to f32 and the error they leave."""

import numpy as np

DEGREE = 4
HALF = np.log(2.0) / 2.0 * 1.0005  # rounding x / ln 2 may overshoot the half a little
r = np.cos(np.linspace(0.0, np.pi, 4001)) * HALF
powers = np.stack([r ** (k + 2) for k in range(DEGREE + 1)], axis=1) / np.exp(r)[:, None]
target = (np.expm1(r) - r) / np.exp(r)

# Lawson's iteration: weighted least squares whose weights grow where the error is largest, until it is level.
weights = np.ones_like(r)
for _ in range(400):
    root = np.sqrt(weights)
    coefficients, *_ = np.linalg.lstsq(powers * root[:, None], target * root, rcond=None)
    error = np.abs(powers @ coefficients - target)
    weights *= error / error.max() + 1e-3
    weights /= weights.sum()

rounded = coefficients.astype(np.float32)
for k, value in enumerate(rounded):
    print(f"kQ{k} = {float(value).hex()}")
print(f"largest relative error: {np.abs(powers @ rounded.astype(np.float64) - target).max():.2e}")
