"""Detaches the XDP program of an interface from it, as `bpftool link detach` does: detach.py INTERFACE.

The link is found by the program, whose number no other has: links name interfaces of all namespaces by their index there.
"""

import ctypes
import json
import platform
import struct
import subprocess
import sys

SYSCALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
OBJ_GET_INFO_BY_FD, LINK_GET_FD_BY_ID, LINK_GET_NEXT_ID, LINK_DETACH = 15, 30, 31, 34
#: `BPF_LINK_TYPE_XDP`.
XDP = 6


def bpf(command, *fields):
    """The result of a call and its attributes afterwards; negative when it failed."""
    attributes = ctypes.create_string_buffer(struct.pack("=" + "Q" * len(fields), *fields), 128)
    result = ctypes.CDLL(None, use_errno=True).syscall(SYSCALL, command, attributes, len(attributes))
    return result, attributes.raw


def main(interface):
    shown = subprocess.run(["ip", "-json", "link", "show", "dev", interface], capture_output=True, check=True)
    program = json.loads(shown.stdout)[0]["xdp"]["prog"]["id"]
    link, detached = 0, 0
    while True:
        # Start and next lie in one field.
        result, attributes = bpf(LINK_GET_NEXT_ID, link)
        if result < 0:
            break
        _, link = struct.unpack_from("=II", attributes)
        descriptor, _ = bpf(LINK_GET_FD_BY_ID, link)
        if descriptor < 0:
            continue
        info = ctypes.create_string_buffer(64)
        bpf(OBJ_GET_INFO_BY_FD, descriptor | len(info) << 32, ctypes.addressof(info))
        kind, _, attached = struct.unpack_from("=III", info.raw)
        if (kind, attached) == (XDP, program):
            assert bpf(LINK_DETACH, descriptor)[0] == 0
            detached += 1
    assert detached == 1, f"{detached} links of {interface}"


main(sys.argv[1])
