"""Findings of several cases, and which of them is told."""

from __future__ import annotations

from collections.abc import Sequence

from grader.findings.finding import Finding


def in_all(findings: Sequence[Sequence[Finding]]) -> list[Finding]:
    """The findings of the first case that are true of all others."""
    first = findings[0] if findings else []
    return [found for found in first if all(found in others for others in findings)]


def most_telling(findings: Sequence[Sequence[Finding]]) -> Finding | None:
    """The one with the highest rank of those that are true in all cases; of equals, the first."""
    return max(in_all(findings), key=lambda found: found.rank, default=None)
