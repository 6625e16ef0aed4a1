"""Runs a middle, rheo or the kernel, between hosts in namespaces, and tries it with what hosts do. docs/live.md says
more."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import signal
import sys
from pathlib import Path

# The namespaces and the checksum are those of the comparison with Linux.
sys.path.append(str(Path(__file__).parents[1] / "interop"))


def main() -> int:
    args = arguments()
    # As an exception, so that namespaces are deleted on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("live: ended by a signal"))
    missing = missing_here()
    if missing is not None:
        print(f"live: not run ({missing})")
        return 0
    from scenarios import short
    from suite import Suite

    if args.full:
        short.connections = short.FULL
    suite = Suite(args.rheo, args.only, args.ground)
    if args.sabotage:
        suite.sabotage()
    elif args.middle == "kernel":
        suite.kernel()
    else:
        suite.rheo()
    print(suite.table())
    return int(suite.has_failed())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="live", description=__doc__)
    parser.add_argument("--rheo", type=Path, default=Path("target/release/rheo"), metavar="BINARY")
    parser.add_argument("--middle", choices=("rheo", "kernel"), default="rheo", help="what is tried")
    parser.add_argument("--only", default="", metavar="TEXT", help="only scenarios with this in their names")
    parser.add_argument("--ground", default="", metavar="TEXT", help='only grounds with this in theirs: "af_packet"')
    parser.add_argument(
        "--full", action="store_true", help="short connections until the external address has no port left that was never used"
    )
    parser.add_argument(
        "--sabotage", action="store_true", help="spoil the wires of a kernel in the middle, and expect failures"
    )
    return parser.parse_args()


def missing_here() -> str | None:
    """What this machine lacks, if anything."""
    if os.geteuid() != 0:
        return "needs root"
    for command in ("ip", "nft", "sysctl", "ethtool", "ping", "curl", "iperf3"):
        if shutil.which(command) is None:
            return f"there is no {command}"
    if importlib.util.find_spec("resource") is None:
        return "not a Linux python3"
    from namespaces import Namespace

    try:
        probe = Namespace(f"rlive-{os.getpid()}-probe")
    except RuntimeError as error:
        return f"no network namespaces: {error}"
    try:
        probe.ip("link", "add", "near", "type", "veth", "peer", "name", "far")
    except RuntimeError as error:
        return f"no veth: {error}"
    finally:
        probe.close()
    return None


if __name__ == "__main__":
    sys.exit(main())
