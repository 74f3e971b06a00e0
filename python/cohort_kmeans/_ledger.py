"""The privacy ledger of a fit."""

from __future__ import annotations

from html import escape
from typing import Any, Iterator, Optional


class Ledger:
    """What has left whoever holds the records, and what it costs.

    Parameters
    ----------
    entries : list of dict
        Releases, totals and notes, as the library has them.

    Attributes
    ----------
    entries : list of dict
        All of them. ``kind`` is ``"release"``, ``"total"`` or ``"note"``.
    """

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self.entries = entries

    def _of(self, kind: str) -> list[dict[str, Any]]:
        return [e for e in self.entries if e["kind"] == kind]

    @property
    def releases(self) -> list[dict[str, Any]]:
        """Entries of what has left a party: mechanism, sensitivity, scale, theorem, who sees it."""
        return self._of("release")

    @property
    def notes(self) -> list[str]:
        """What no budget covers."""
        return [e["what"] for e in self._of("note")]

    def total(self, viewer: str = "outsider") -> tuple[Optional[float], Optional[float]]:
        """Epsilon and delta of everything that a viewer sees; None for either if nothing bounds it.

        Parameters
        ----------
        viewer : str, default="outsider"
            Whose view: ``"outsider"``, ``"server"``, ``"client 1"`` and so on.

        Returns
        -------
        (epsilon, delta) : tuple of float or None
        """
        for e in self._of("total"):
            if viewer in e["viewers"]:
                return e.get("epsilon"), e.get("delta")
        return None, None

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self.entries == other.entries

    __hash__ = None  # type: ignore[assignment]

    def _totals(self) -> list[str]:
        lines = []
        for e in self._of("total"):
            eps = e.get("epsilon")
            price = "no bound" if eps is None else f"epsilon {eps:.4g} at delta {e.get('delta') or 0:.3g}"
            lines.append(f"{e['what']}: {price}")
        return lines

    def __repr__(self) -> str:
        lines = [
            f"{e['what']}: {e.get('mechanism', '')}, scale {e.get('scale', 0):.4g}, epsilon {e.get('epsilon') or float('inf'):.4g} ({e.get('theorem', '')})"
            for e in self.releases
        ]
        lines += self._totals() + ["not covered: " + n for n in self.notes]
        return "\n".join(lines) or "nothing was released"

    def _repr_html_(self) -> str:
        columns = ("what", "mechanism", "scale", "epsilon", "delta", "theorem", "who sees it")
        rows = []
        for e in self.releases:
            cells = [
                e["what"], e.get("mechanism", ""), f"{e.get('scale', 0):.4g}", f"{e.get('epsilon') or float('inf'):.4g}",
                f"{e.get('delta') or 0:.3g}", e.get("theorem", ""), ", ".join(e.get("viewers", [])),
            ]
            rows.append("<tr>" + "".join(f"<td{_side(name)}>{escape(str(c))}</td>" for name, c in zip(columns, cells)) + "</tr>")
        head = "".join(f"<th{_side(c)}>{c}</th>" for c in columns)
        totals = "".join(f"<p><strong>{escape(t)}</strong></p>" for t in self._totals())
        notes = "".join(f"<li>{escape(n)}</li>" for n in self.notes)
        if notes:
            notes = f"<p>Not covered by any budget:</p><ul>{notes}</ul>"
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        # On a narrow page the table alone scrolls. A grid, as a block would make the page as wide as the table.
        return f'<div style="display:grid;grid-template-columns:minmax(0,1fr)"><div style="overflow-x:auto">{table}</div>{totals}{notes}</div>'


def _side(column: str) -> str:
    """The side that a column is aligned to: numbers to the right as notebooks have all cells, words to the left."""
    return "" if column in ("scale", "epsilon", "delta") else ' style="text-align:left"'
