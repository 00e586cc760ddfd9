"""Numbers that machine arithmetic may stumble over."""

from __future__ import annotations

from hypothesis import strategies as st

from emberlog.types import INT64_MAX, INT64_MIN

int64s = st.one_of(
    st.integers(-5, 5),
    st.sampled_from((INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT64_MAX, 2**31, -(2**31), 2**62, 2**32)),
    st.integers(INT64_MIN, INT64_MAX),
)
