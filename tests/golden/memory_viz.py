"""Checks a memory snapshot the way the viewer reads it: memory_viz.py FILE [PEAK].

Only opcodes that the viewer's own reader knows; blocks tile their segments; playing the events
backwards from the segments at the end, every block lies in a segment and the beginning is empty;
live bytes never exceed PEAK, and reach it.
"""
import pickle
import pickletools
import sys

KNOWN = set(
    'EMPTY_DICT EMPTY_LIST MARK EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3 TUPLE LIST DICT SETITEM SETITEMS APPEND '
    'APPENDS NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 BINFLOAT LONG1 BINUNICODE SHORT_BINUNICODE BINPUT '
    'LONG_BINPUT BINGET LONG_BINGET MEMOIZE FRAME STOP PROTO'.split())


def need(truth, what):
    if not truth:
        sys.exit('memory_viz: ' + what)


def check_opcodes(data):
    for op, argument, _ in pickletools.genops(data):
        need(op.name in KNOWN, 'opcode ' + op.name)
        need(op.name != 'PROTO' or 2 <= argument <= 4, 'protocol %s' % argument)
        need(op.name != 'LONG1' or argument.bit_length() < 64, 'a number of more than 64 bits')


def check_segment(s):
    at = s['address']
    used = 0
    for b in s['blocks']:
        need(b['address'] == at, 'blocks of segment %x leave a hole at %x' % (s['address'], at))
        need(b['state'] in ('active_allocated', 'active_pending_free', 'inactive'), b['state'])
        at += b['size']
        used += b['size'] if b['state'] == 'active_allocated' else 0
    need(at == s['address'] + s['total_size'], 'blocks do not fill segment %x' % s['address'])
    need(used == s['allocated_size'], 'allocated_size of segment %x' % s['address'])


def check_device(device, events, segments):
    reserved = {s['address']: s['total_size'] for s in segments}
    live = {b['address']: b['size'] for s in segments for b in s['blocks'] if b['state'] == 'active_allocated'}
    total = peak = sum(live.values())
    last = None
    for e in reversed(events):
        need(set(e) == {'action', 'addr', 'size', 'stream', 'time_us', 'frames'}, 'keys %s' % sorted(e))
        need(all(set(f) == {'filename', 'line', 'name'} for f in e['frames']) and e['frames'], 'frames')
        need(last is None or e['time_us'] <= last, 'time runs backwards')
        last = e['time_us']
        action, addr, size = e['action'], e['addr'], e['size']
        if action == 'free_completed':
            need(addr not in live, 'free of %x, which is live after it' % addr)
            need(any(a <= addr and addr + size <= a + n for a, n in reserved.items()), '%x in no segment' % addr)
            live[addr] = size
            total += size
            peak = max(peak, total)
        elif action == 'alloc':
            need(live.pop(addr, None) == size, 'alloc of %x is not live after it' % addr)
            total -= size
        elif action == 'segment_free':
            need(addr not in reserved, 'segment %x is there after it was freed' % addr)
            reserved[addr] = size
        elif action == 'segment_alloc':
            need(reserved.pop(addr, None) == size, 'segment %x is not there after it was allocated' % addr)
        else:
            need(action == 'free_requested', action)
    need(not live and not reserved, 'device %d does not begin empty' % device)
    return peak


def main():
    with open(sys.argv[1], 'rb') as f:
        data = f.read()
    check_opcodes(data)
    snapshot = pickle.loads(data)
    for s in snapshot['segments']:
        check_segment(s)
    peaks = []
    for device, events in enumerate(snapshot['device_traces']):
        mine = [s for s in snapshot['segments'] if s['device'] == device]
        peaks.append(check_device(device, events, mine))
    if len(sys.argv) > 2:
        need(max(peaks) == int(sys.argv[2]), 'the peak is %d, not %s' % (max(peaks), sys.argv[2]))
    print(len(snapshot['segments']), 'segments', [len(t) for t in snapshot['device_traces']], 'events', peaks)


main()
