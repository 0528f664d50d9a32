// Updates at places that indices name, for a GPU: the updates of one place are brought together by a
// stable sort, and joined in parts that do not depend on what else the device does. Elements lie as
// (outer, length, inner); a line is a row and a column, and has `count` updates.

typedef struct {
    long lines, count, length, inner, index_start, value_start, shared, index_type, call;
} Parameters;

// Marks a place in the carried keys where nothing is carried.
#define NOTHING 0x80000000u

#ifdef HAS_make_targets
KERNEL(256) void make_targets(
    const Parameters parameters, GLOBAL const void* indices, GLOBAL uint* keys,
    GLOBAL uint* places, GLOBAL long* note) {
    const long i = ITEM, count = parameters.count, line = i / count, k = i % count;
    if (line >= (parameters.shared ? 1 : parameters.lines)) return;
    const long column = line % parameters.inner, row = line / parameters.inner;
    const long at = parameters.shared ? k : (row * count + k) * parameters.inner + column;
    const int type = (int)parameters.index_type;
    const long index = index_in(read_ulong(indices, parameters.index_start + at, type), type,
                                parameters.length, note, parameters.call);
    keys[i] = (uint)(index < 0 ? parameters.length : index);
    places[i] = (uint)k;
}
#endif

#ifdef HAS_rank_targets
// Rows of few keys in order: SHARERS items count what comes before a key.
KERNEL(256) void rank_targets(
    const Parameters parameters, GLOBAL const uint* restrict keys,
    GLOBAL uint* restrict sorted_keys, GLOBAL uint* restrict places) {
    LOCAL uint found[256];
    const int count = (int)parameters.count, share = LANE % SHARERS;
    const long item = ITEM / SHARERS, row = item / count;
    const int k = (int)(item - row * count), is_there = row < (parameters.shared ? 1 : parameters.lines);
    GLOBAL const uint* own = keys + (is_there ? row * count : 0);
    const uint key = own[k];
    uint before = 0;
    UNROLLED(8) for (int j = share; j < count; j += SHARERS) before += own[j] < key + (j < k);
    found[LANE] = before;
    BARRIER;
    if (share || !is_there) return;
    for (int j = 1; j < SHARERS; ++j) before += found[LANE + j];
    sorted_keys[row * count + before] = key;
    places[row * count + before] = (uint)k;
}
#endif

#ifdef HAS_join_segments
#define AT_ONCE 8
#if IS_FIRST
#define KEY(k) keys[base + (k)]
#define VALUE(k) \
    READ(values, parameters.value_start + (row * count + places[base + (k)]) * inner + column, TYPE)
#else
#define KEY(k) keys[(k) * parameters.lines + line]
#define VALUE(k) AS(const C, values)[(k) * parameters.lines + line]
#endif

inline C joined(C x, C y) {
    switch (UPDATE) {
        case 0: return y;
        case 1: return x + y;
        case 2: return x * y;
        case 3: return smaller(x, y);
        default: return larger(x, y);
    }
}

// An item takes a chunk of the sorted updates of a line, and its neighbour one of the next line. What
// is whole within it takes effect; what goes on beyond its ends is carried to the next pass: one part
// before and one behind.
KERNEL(256) void join_segments(
    const Parameters parameters, GLOBAL void* out, GLOBAL const uint* keys,
    GLOBAL const uint* places, GLOBAL const void* values, GLOBAL uint* carried_keys,
    GLOBAL C* carried) {
    const long count = parameters.count, inner = parameters.inner;
    const long line = ITEM % parameters.lines, chunk = ITEM / parameters.lines;
    const long first = chunk * CHUNK, stop = first + CHUNK < count ? first + CHUNK : count;
    if (first >= count) return;
    const long column = line % inner, row = line / inner;
    const long base = parameters.shared ? 0 : line * count;
    const long before = 2 * chunk * parameters.lines + line, behind = before + parameters.lines;
    const uint first_key = KEY(first) & ~NOTHING, last_key = KEY(stop - 1) & ~NOTHING;
    const int from_before = first > 0 && (KEY(first - 1) & ~NOTHING) == first_key;
    const int goes_on = stop < count && (KEY(stop) & ~NOTHING) == last_key;
    carried_keys[before] = first_key | NOTHING;
    carried_keys[behind] = last_key | NOTHING;
    uint own_key = first_key;
    int is_first = 1, held = 0;
    C own = (C)0;
    for (long block = first; block <= stop; block += AT_ONCE) {
        uint entries[AT_ONCE];
        C several[AT_ONCE];
        UNROLL for (int j = 0; j < AT_ONCE; ++j) {
            const long k = block + j < stop ? block + j : stop - 1;
            entries[j] = KEY(k);
            several[j] = VALUE(k);
        }
        UNROLL for (int j = 0; j < AT_ONCE; ++j) {
            const int is_end = block + j == stop;
            const uint key = entries[j] & ~NOTHING;
            if (is_end || key != own_key) {
                // A segment ends here.
                if (is_first && from_before) {
                    if (held) carried_keys[before] = own_key;
                    carried[before] = own;
                } else if (is_end && goes_on) {
                    if (held) carried_keys[behind] = own_key;
                    carried[behind] = own;
                } else if (held && own_key < parameters.length) {
                    const long place = (row * parameters.length + own_key) * inner + column;
                    WRITE(out, place, TYPE, joined(READ(out, place, TYPE), own));
                }
                if (is_end) return;
                own_key = key;
                is_first = held = 0;
            }
            if (entries[j] & NOTHING) continue;
            own = held ? joined(own, several[j]) : several[j];
            held = 1;
        }
    }
}
#endif
