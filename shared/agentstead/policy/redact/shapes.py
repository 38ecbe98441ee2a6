"""Texts that are secrets by their shape: token formats, private keys, web tokens, headers, user info in addresses.

Each shape stands behind a keyword: text without the keyword never meets the pattern.
"""

import re
from dataclasses import dataclass
from functools import partial

_WORD_BEFORE = r"(?<![A-Za-z0-9_])"
_URL_SAFE = "[A-Za-z0-9_-]"


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of secret: the keyword that must occur, the pattern, and the group that is taken out (0: all)."""

    kind: str
    keyword: str
    pattern: re.Pattern[str]
    group: int = 0


def _token(kind: str, keyword: str, rest: str) -> Shape:
    return Shape(kind, keyword, re.compile(_WORD_BEFORE + re.escape(keyword) + rest))


SHAPES: tuple[Shape, ...] = (
    _token("agentstead-token", "agst_", r"[a-z]+_[A-Za-z0-9_-]{40,}"),
    _token("github-token", "ghp_", r"[A-Za-z0-9]{30,}"),
    _token("github-token", "gho_", r"[A-Za-z0-9]{30,}"),
    _token("github-token", "ghu_", r"[A-Za-z0-9]{30,}"),
    _token("github-token", "ghs_", r"[A-Za-z0-9._-]{30,}"),
    _token("github-token", "ghr_", r"[A-Za-z0-9]{30,}"),
    _token("github-token", "github_pat_", r"[A-Za-z0-9_]{40,}"),
    _token("gitlab-token", "glpat-", rf"{_URL_SAFE}{{20,}}"),
    _token("gitlab-token", "gldt-", rf"{_URL_SAFE}{{20,}}"),
    _token("aws-key-id", "AKIA", r"[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _token("aws-key-id", "ASIA", r"[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _token("google-key", "AIza", rf"{_URL_SAFE}{{35}}"),
    _token("google-token", "ya29.", rf"{_URL_SAFE}{{20,}}"),
    _token("google-secret", "GOCSPX-", rf"{_URL_SAFE}{{24,}}"),
    _token("slack-token", "xoxb-", r"[A-Za-z0-9-]{20,}"),
    _token("slack-token", "xoxp-", r"[A-Za-z0-9-]{20,}"),
    _token("slack-token", "xoxa-", r"[A-Za-z0-9-]{20,}"),
    _token("slack-token", "xapp-", r"[A-Za-z0-9-]{20,}"),
    _token("anthropic-key", "sk-ant-", rf"{_URL_SAFE}{{20,}}"),
    _token("openai-key", "sk-proj-", rf"{_URL_SAFE}{{20,}}"),
    _token("api-key", "sk-", r"[A-Za-z0-9]{32,}"),
    _token("stripe-key", "sk_live_", r"[A-Za-z0-9]{16,}"),
    _token("stripe-key", "sk_test_", r"[A-Za-z0-9]{16,}"),
    _token("stripe-key", "rk_live_", r"[A-Za-z0-9]{16,}"),
    _token("webhook-secret", "whsec_", r"[A-Za-z0-9+/=]{24,}"),
    _token("npm-token", "npm_", r"[A-Za-z0-9]{36}"),
    _token("pypi-token", "pypi-", rf"{_URL_SAFE}{{50,}}"),
    _token("huggingface-token", "hf_", r"[A-Za-z0-9]{30,}"),
    _token("digitalocean-token", "dop_v1_", r"[a-f0-9]{64}"),
    _token("shopify-token", "shpat_", r"[a-fA-F0-9]{32}"),
    _token("sendgrid-key", "SG.", rf"{_URL_SAFE}{{16,}}\.{_URL_SAFE}{{30,}}"),
    _token("docker-token", "dckr_pat_", rf"{_URL_SAFE}{{20,}}"),
    _token("vault-token", "hvs.", rf"{_URL_SAFE}{{24,}}"),
    _token("linear-key", "lin_api_", r"[A-Za-z0-9]{32,}"),
    _token("sentry-token", "sntrys_", r"[A-Za-z0-9+/=_]{40,}"),
    _token("atlassian-token", "ATATT3x", r"[A-Za-z0-9_=-]{50,}"),
    _token("age-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}"),
    _token("web-token", "eyJ", rf"{_URL_SAFE}{{8,}}\.{_URL_SAFE}{{8,}}\.{_URL_SAFE}*"),
    Shape(
        "private-key",
        "PRIVATE KEY-----",
        re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)", re.DOTALL),
    ),
    Shape("url-password", "://", re.compile(r"://[^\s/:@'\"<>]{0,128}:([^\s/@'\"<>{}$]{1,256})@"), 1),
)

# in lower case, since headers are written in every case
HEADERS: tuple[Shape, ...] = (
    Shape(
        "authorization",
        "authorization",
        re.compile(
            r"(?i)authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:(?:bearer|basic|token|digest)\s{1,3})?"
            r"([A-Za-z0-9._~+/=-]{8,})"
        ),
        1,
    ),
    Shape("bearer", "bearer ", re.compile(r"(?i)\bbearer\s{1,3}(?=[A-Za-z._~+/-]*[0-9])([A-Za-z0-9._~+/-]{16,}=*)"), 1),
)


def replace_shapes(text: str, shapes: tuple[Shape, ...], *, searched: str) -> str:
    """Return `text` without what has one of these shapes; keywords are looked for in `searched`."""
    for shape in shapes:
        if shape.keyword in searched:
            text = shape.pattern.sub(partial(_marked, shape), text)
    return text


def _marked(shape: Shape, found: re.Match[str]) -> str:
    secret = found[shape.group]
    if secret.startswith("[redacted:"):
        return found[0]
    start, end = found.start(shape.group) - found.start(), found.end(shape.group) - found.start()
    return f"{found[0][:start]}[redacted:{shape.kind}]{found[0][end:]}"
