"""Build what `lately.plan` chooses, run it, and print what it does beside what the planner states.

uv run benchmarks/plan.py
"""

from tqdm import tqdm

import lately
from lately._families import FAMILIES
from support.simulation import most, simulate

REQUESTS = {
    "1e6, 1 %": {"window": 1_000_000, "fpr": 0.01},
    "1e6, 0.1 %, slack ≤ 7 %": {"window": 1_000_000, "fpr": 0.001, "slack": 70_000},
    "1 h, 0.1 %, unknown rate": {"window": "1h", "fpr": 0.001},
    "16 MiB for 1e6": {"window": 1_000_000, "nbytes": 16 << 20},
}
# Keys in an hour, unknown to the planner.
UNTOLD = 1_000_000
HEADER = """\
| request | filter | misses | fpr | fresh reported | bytes | held | slack | gone reported | NPWS | measured |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""


def main() -> None:
    print(HEADER)
    for name, request in REQUESTS.items():
        plan = lately.plan(**request)
        for choice in tqdm(plan.choices, desc=name, leave=False):
            family = FAMILIES[choice.name]
            if family.baseline:
                continue
            seen = simulate(choice, rate=0 if isinstance(request["window"], int) else UNTOLD, fresh=1_000_000)
            within = (
                seen.missed == 0
                and seen.reported <= most(choice, seen, seen.fresh)
                and seen.returned <= most(choice, seen, seen.gone)
            )
            shown = f"**{choice.name}**" if choice is plan.best else choice.name
            print(
                f"| {name} | {shown} | {seen.missed} of {seen.live:,} | {choice.fpr:.3g} "
                f"| {seen.reported / seen.fresh:.3g} | {choice.nbytes:,} | {seen.nbytes:,} | {choice.slack:,.6g} "
                f"| {seen.returned / max(seen.gone, 1):.3g} | {choice.npws:.3g} | {seen.npws:.3g} |"
                + ("" if within else " beyond its bounds")
            )


if __name__ == "__main__":
    main()
