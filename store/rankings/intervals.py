"""Confidence intervals at 95 %, in closed form: Wilson's for a share, Student's t for a mean."""

from __future__ import annotations

from math import sqrt

Interval = tuple[float, float]

Z = 1.959964
"""97.5 % quantile of the normal distribution."""

T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""97.5 % quantiles of Student's t for 1 to 30 degrees of freedom, as tables print them."""


def wilson(successes: float, n: float) -> Interval:
    """Wilson's interval for a share: ``successes`` of ``n`` trials, either of them fractional.

    No success gives a lower end of exactly 0, nothing else an upper end of exactly 1.

    >>> [round(end, 4) for end in wilson(10, 12)]
    [0.552, 0.953]
    """
    p, spread = successes / n, Z * Z / n
    middle = (p + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * sqrt(p * (1 - p) / n + spread / (4 * n))
    return (
        0.0 if successes <= 0 else middle - half,
        1.0 if successes >= n else middle + half,
    )


def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t; beyond the table within 0.002 of it.

    >>> student(8), round(student(60), 3)
    (2.306, 2.001)
    """
    return T[freedom - 1] if freedom <= len(T) else Z + 2.45 / freedom
