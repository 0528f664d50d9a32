// Updates at places that indices name, for a GPU: the updates of one place are brought together by a
// stable sort, and joined in parts that do not depend on what else the device does. Elements lie as
// (outer, length, inner); a line is a row and a column, and has `count` updates.

typedef struct {
    long lines, count, length, inner, index_start, value_start, shared, index_type, call;
} Parameters;

#define CHUNK 32
// Marks a place in the carried keys where nothing is carried.
#define NOTHING 0x80000000u

#define LINE(line)                                                      \
    const long column = (line) % parameters.inner, row = (line) / parameters.inner;

#ifdef HAS_make_targets
KERNEL(256) void make_targets(
    const Parameters parameters, GLOBAL const void* indices, GLOBAL uint* keys,
    GLOBAL uint* places, GLOBAL long* note) {
    const long i = ITEM, count = parameters.count, line = i / count, k = i % count;
    if (line >= (parameters.shared ? 1 : parameters.lines)) return;
    LINE(line)
    const long at = parameters.shared ? k : (row * count + k) * parameters.inner + column;
    const int type = (int)parameters.index_type;
    const long index = index_in(read_ulong(indices, parameters.index_start + at, type), type,
                                parameters.length, note, parameters.call);
    keys[i] = (uint)(index < 0 ? parameters.length : index);
    places[i] = (uint)k;
}
#endif

#ifdef HAS_join_segments
inline C joined(C x, C y) {
    switch (UPDATE) {
        case 0: return y;
        case 1: return x + y;
        case 2: return x * y;
        case 3: return smaller(x, y);
        default: return larger(x, y);
    }
}

// An item takes a chunk of the sorted updates of a line. What is whole within it takes effect; what
// goes on beyond its ends is carried to the next pass: one part before and one behind.
KERNEL(256) void join_segments(
    const Parameters parameters, GLOBAL void* out, GLOBAL const uint* keys,
    GLOBAL const uint* places, GLOBAL const void* values, GLOBAL uint* carried_keys,
    GLOBAL C* carried) {
    const long count = parameters.count, chunks = (count + CHUNK - 1) / CHUNK;
    const long line = ITEM / chunks, chunk = ITEM % chunks;
    if (line >= parameters.lines) return;
    LINE(line)
    const long base = parameters.shared ? 0 : line * count;
    const long first = chunk * CHUNK, stop = first + CHUNK < count ? first + CHUNK : count;
    const long carry = 2 * (line * chunks + chunk);
    const uint first_key = keys[base + first] & ~NOTHING;
    const uint last_key = keys[base + stop - 1] & ~NOTHING;
    const int from_before = first > 0 && (keys[base + first - 1] & ~NOTHING) == first_key;
    const int goes_on = stop < count && (keys[base + stop] & ~NOTHING) == last_key;
    carried_keys[carry] = first_key | NOTHING;
    carried_keys[carry + 1] = last_key | NOTHING;
    uint own_key = first_key;
    int is_first = 1, held = 0;
    C own = (C)0;
    for (long k = first; k <= stop; ++k) {
        const uint entry = k < stop ? keys[base + k] : 0, key = entry & ~NOTHING;
        if (k == stop || key != own_key) {
            // A segment ends here.
            if (is_first && from_before) {
                if (held) carried_keys[carry] = own_key;
                carried[carry] = own;
            } else if (k == stop && goes_on) {
                if (held) carried_keys[carry + 1] = own_key;
                carried[carry + 1] = own;
            } else if (held && own_key < parameters.length) {
                const long place = (row * parameters.length + own_key) * parameters.inner + column;
                WRITE(out, place, TYPE, joined(READ(out, place, TYPE), own));
            }
            if (k == stop) break;
            own_key = key;
            is_first = held = 0;
        }
        if (entry & NOTHING) continue;
#if IS_FIRST
        const long at = (row * count + places[base + k]) * parameters.inner + column;
        const C value = READ(values, parameters.value_start + at, TYPE);
#else
        const C value = AS(const C, values)[line * count + k];
#endif
        own = held ? joined(own, value) : value;
        held = 1;
    }
}
#endif
