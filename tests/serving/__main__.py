"""Has rheo serve files over TCP to the kernel of this machine, between network namespaces. docs/serve.md says more."""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
from pathlib import Path

# The namespaces are those of the comparison with Linux.
sys.path.append(str(Path(__file__).parents[1] / "interop"))

from cable import GROUNDS  # noqa: E402
from scenarios import SCENARIOS  # noqa: E402
from server import Serving, Sizes  # noqa: E402


def main() -> int:
    args = arguments()
    # As an exception, so that namespaces are deleted on the way out. What fails on that way takes the exception's place.
    signalled = []

    def end(*_: object) -> None:
        signalled.append(True)
        sys.exit("serving: ended by a signal")

    signal.signal(signal.SIGTERM, end)
    failed = ran = 0
    for ground in GROUNDS:
        for name, (scenario, grounds) in SCENARIOS.items():
            if ground not in grounds or args.only not in f"{name} {ground}":
                continue
            start, ran = time.monotonic(), ran + 1
            try:
                with Serving(args.rheo, ground) as serving:
                    scenario(serving, Sizes(args.megabytes, args.files))
                outcome = "ok"
            except Exception:
                traceback.print_exc()
                if signalled:
                    return 1
                outcome, failed = "FAILED", failed + 1
            print(f"{outcome:6} {ground:10} {name} ({time.monotonic() - start:.1f} s)", flush=True)
    print(f"{ran - failed} of {ran} scenarios hold")
    return int(failed > 0 or ran == 0)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="serving", description=__doc__)
    parser.add_argument("--rheo", type=Path, default=Path("target/release/rheo"), metavar="BINARY")
    parser.add_argument("--only", default="", metavar="TEXT", help='only scenarios with this in "NAME GROUND"')
    parser.add_argument("--megabytes", type=int, default=64, metavar="N", help="the length of the long file")
    parser.add_argument("--files", type=int, default=500, metavar="N", help="how many short files")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
