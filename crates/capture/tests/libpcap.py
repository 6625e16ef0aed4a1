"""Which frames libpcap's filters match. Reads filters, one a line, an empty line, and frames in hexadecimal, one a line; prints,
for each filter, a line of 0 and 1, or `error` and why libpcap does not read it. Ends with 3 without libpcap."""
import ctypes
import sys

for name in ("libpcap.so.0.8", "libpcap.so.1", "libpcap.so"):
    try:
        pcap = ctypes.CDLL(name)
        break
    except OSError:
        pass
else:
    sys.exit(3)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint), ("instructions", ctypes.c_void_p)]


class Header(ctypes.Structure):
    _fields_ = [
        ("seconds", ctypes.c_long),
        ("microseconds", ctypes.c_long),
        ("captured", ctypes.c_uint32),
        ("length", ctypes.c_uint32),
    ]


pcap.pcap_open_dead.restype = ctypes.c_void_p
pcap.pcap_geterr.restype = ctypes.c_char_p
ETHERNET, NO_NETMASK = 1, ctypes.c_uint32(0xFFFFFFFF)
handle = ctypes.c_void_p(pcap.pcap_open_dead(ETHERNET, 65535))
filters, frames = sys.stdin.read().split("\n\n")
frames = [bytes.fromhex(frame) for frame in frames.split()]
for text in filters.split("\n"):
    program = Program()
    if pcap.pcap_compile(handle, ctypes.byref(program), text.encode(), 1, NO_NETMASK):
        print("error", pcap.pcap_geterr(handle).decode())
        continue
    bits = ""
    for frame in frames:
        header = Header(0, 0, len(frame), len(frame))
        matches = pcap.pcap_offline_filter(ctypes.byref(program), ctypes.byref(header), frame)
        bits += "1" if matches else "0"
    print(bits)
