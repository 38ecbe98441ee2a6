"""The demonstration as one page: self-contained, readable without it being open anywhere else."""

from collections.abc import Sequence
from html import escape

from agentstead.cli.demo.play import Attempt, Outcome
from agentstead.cli.demo.stage import Event

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #cf222e; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .4rem .6rem;
  border-bottom: 1px solid var(--line); vertical-align: top; } td.at { font-variant-numeric: tabular-nums; }
.pass { color: var(--good); } .fail, .error, .timeout { color: var(--bad); } pre { overflow: auto; padding: .6rem;
  border: 1px solid var(--line); border-radius: .4rem; } small { opacity: .75; }
"""


def page(outcome: Outcome, events: Sequence[Event]) -> str:
    """Return the HTML of the report."""
    verdict = (
        f"<strong>{escape(outcome.winner.candidate.name)}</strong> was promoted; "
        f"receipt <code>{escape(outcome.winner.receipt['receipt_id'])}</code> proves it."
        if outcome.winner
        else "No candidate was proved, so nothing was promoted."
    )
    attempts = "".join(_attempt(attempt) for attempt in outcome.attempts)
    timeline = "".join(_event(event) for event in events)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Agentstead demonstration</title>'
        f"<style>{_STYLE}</style></head><body><h1>Agentstead demonstration</h1><p>{verdict}</p>"
        "<h2>Receipts side by side</h2><table><tr><th>candidate</th><th>check</th><th>receipt</th><th>tree</th>"
        f"<th>lines changed</th></tr>{attempts}</table>"
        f"<h2>What each candidate changed</h2>{''.join(_patch(attempt) for attempt in outcome.attempts)}"
        f"<h2>Timeline</h2><table><tr><th>seconds</th><th>who</th><th>what</th></tr>{timeline}</table></body></html>\n"
    )


def _attempt(attempt: Attempt) -> str:
    status = escape(str(attempt.receipt["status"]))
    return (
        f'<tr><td>{escape(attempt.candidate.name)}</td><td class="{status}">{status}</td>'
        f"<td><code>{escape(attempt.receipt['receipt_id'])}</code></td>"
        f"<td><code>{escape(attempt.receipt['tree_in'][:12])}</code></td><td>{attempt.changed_lines}</td></tr>"
    )


def _patch(attempt: Attempt) -> str:
    return f"<h3>{escape(attempt.candidate.name)}</h3><pre>{escape(attempt.candidate.patch)}</pre>"


def _event(event: Event) -> str:
    detail = f"<br><small>{escape(event.detail)}</small>" if event.detail else ""
    at, who, what = f"{event.at_s:.2f}", escape(event.who), escape(event.what)
    return f'<tr><td class="at">{at}</td><td>{who}</td><td>{what}{detail}</td></tr>'
