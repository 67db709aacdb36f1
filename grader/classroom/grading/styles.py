"""The rules of a page's style sheets that the page uses: of Bootstrap's, that is one in fifty."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import tinycss2

STYLE_BLOCK = re.compile(r"(<style[^>]*>)(.*?)(</style>)", re.DOTALL)
CLASSES_IN_USE = re.compile(r'\bclass="([^"]*)"')
TAGS_IN_USE = re.compile(r"<([a-z]\w*)")
CONDITION = re.compile(r":not\([^)]*\)|\[[^\]]*\]|::?[\w-]+(?:\([^)]*\))?")  # of a selector; it may hold of any element
CLASS = re.compile(r"\.([\w-]+)")
ID = re.compile(r"#[\w-]+")
TAG = re.compile(r"[a-z]\w*")


@dataclass(frozen=True)
class StyleRule:
    """One rule: its selectors, each with the classes and tags that it is about, and what it says; or a group of rules
    under a condition."""

    selectors: tuple[tuple[str, frozenset[str], frozenset[str]], ...] = ()
    body: str = ""
    condition: str = ""
    inner: tuple[StyleRule, ...] = ()

    def used(self, classes: Set[str], tags: Set[str]) -> str:
        """The rule as text, with the selectors that may match; "" where none may."""
        if self.inner:
            inside = "".join(rule.used(classes, tags) for rule in self.inner)
            return f"{self.condition}{{{inside}}}" if inside else ""
        found = [text for text, of_classes, of_tags in self.selectors if of_classes <= classes and of_tags <= tags]
        return f"{','.join(found)}{{{self.body}}}\n" if found else ""


def with_used_styles(page: str) -> str:
    """The page, whose head has no rule that matches nothing in it. What is in the body is a card's own."""
    classes = {name for found in CLASSES_IN_USE.findall(page) for name in found.split()}
    tags = set(TAGS_IN_USE.findall(page))
    head, body, rest = page.partition("<body")
    slim = STYLE_BLOCK.sub(lambda m: m[1] + "".join(rule.used(classes, tags) for rule in _rules(m[2])) + m[3], head)
    return f"{slim}{body}{rest}"


@functools.lru_cache(maxsize=16)  # they are the same on all pages
def _rules(style: str) -> tuple[StyleRule, ...]:
    return _read(tinycss2.parse_stylesheet(style, skip_comments=True, skip_whitespace=True))


def _read(nodes: Sequence[Any]) -> tuple[StyleRule, ...]:
    return tuple(rule for node in nodes if (rule := _rule(node)))


def _rule(node: Any) -> StyleRule | None:
    prelude = tinycss2.serialize(node.prelude).strip() if node.type in ("qualified-rule", "at-rule") else ""
    if node.type == "qualified-rule":
        return StyleRule(tuple(map(_selector, prelude.split(","))), tinycss2.serialize(node.content).strip())
    if node.type == "at-rule" and node.lower_at_keyword == "media" and "print" not in prelude:
        inner = _read(tinycss2.parse_rule_list(node.content, skip_comments=True, skip_whitespace=True))
        return StyleRule(condition=f"@media {prelude}", inner=inner)
    return None


def _selector(text: str) -> tuple[str, frozenset[str], frozenset[str]]:
    plain = CONDITION.sub("", text)
    tags = TAG.findall(ID.sub("", CLASS.sub("", plain)))
    return text.strip(), frozenset(CLASS.findall(plain)), frozenset(tags)
