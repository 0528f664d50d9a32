// Scatter for a GPU, along the middle axis of (outer, length, inner): a stable sort by index brings the
// updates of an element together, and they are combined in chunks that do not depend on scheduling. Each
// of the outer * inner columns has `count` updates.

typedef struct {
    long columns, count, length, inner, parts, index_offset, value_offset, shared, index_type, op;
} Parameters;

// Marks carried keys without a value.
#define WITHOUT_VALUE 0x80000000u

#ifdef HAS_make_keys
KERNEL(256) void make_keys(
    const Parameters parameters, GLOBAL const void* indices, GLOBAL uint* keys,
    GLOBAL uint* positions, GLOBAL long* error) {
    const long i = ITEM, count = parameters.count, column_index = i / count, k = i % count;
    if (column_index >= (parameters.shared ? 1 : parameters.columns)) return;
    const long column = column_index % parameters.inner, row = column_index / parameters.inner;
    const long position =
        parameters.shared ? k : ((row * count + k) * parameters.inner + column) / parameters.parts;
    const int type = (int)parameters.index_type;
    const long index = checked_index(read_ulong(indices, parameters.index_offset + position, type), type,
                                parameters.length, error, parameters.op);
    keys[i] = (uint)(index < 0 ? parameters.length : index);
    positions[i] = (uint)k;
}
#endif

#ifdef HAS_rank_keys
// Sorts short rows of keys: LANES items count the keys that come before a key.
KERNEL(256) void rank_keys(
    const Parameters parameters, GLOBAL const uint* restrict keys,
    GLOBAL uint* restrict sorted_keys, GLOBAL uint* restrict positions) {
    LOCAL uint ranks[256];
    const int count = (int)parameters.count, lane = LANE % LANES;
    const long item = ITEM / LANES, row = item / count;
    const int k = (int)(item - row * count), has_row = row < (parameters.shared ? 1 : parameters.columns);
    GLOBAL const uint* own = keys + (has_row ? row * count : 0);
    const uint key = own[k];
    uint rank = 0;
    UNROLLED(8) for (int j = lane; j < count; j += LANES) rank += own[j] < key + (j < k);
    ranks[LANE] = rank;
    BARRIER;
    if (lane || !has_row) return;
    for (int j = 1; j < LANES; ++j) rank += ranks[LANE + j];
    sorted_keys[row * count + rank] = key;
    positions[row * count + rank] = (uint)k;
}
#endif

#ifdef HAS_combine_segments
#define LOADS_IN_FLIGHT 8
#if IS_FIRST
#define KEY(k) keys[base + (k)]
#define VALUE(k) \
    READ(values, parameters.value_offset + (row * count + positions[base + (k)]) * inner + column, TYPE)
#else
#define KEY(k) keys[(k) * parameters.columns + column_index]
#define VALUE(k) AS(const C, values)[(k) * parameters.columns + column_index]
#endif

// An item combines a chunk of the sorted updates of a column, and its neighbour one of the next column.
// Segments of equal keys within the chunk take effect; the two that continue beyond its ends are carried
// to the next pass.
KERNEL(256) void combine_segments(
    const Parameters parameters, GLOBAL void* out, GLOBAL const uint* keys,
    GLOBAL const uint* positions, GLOBAL const void* values, GLOBAL uint* carried_keys,
    GLOBAL C* carried) {
    const long count = parameters.count, inner = parameters.inner;
    const long column_index = ITEM % parameters.columns, chunk = ITEM / parameters.columns;
    const long first = chunk * CHUNK, stop = first + CHUNK < count ? first + CHUNK : count;
    if (first >= count) return;
    const long column = column_index % inner, row = column_index / inner;
    const long base = parameters.shared ? 0 : column_index * count;
    const long before = 2 * chunk * parameters.columns + column_index, behind = before + parameters.columns;
    const uint first_key = KEY(first) & ~WITHOUT_VALUE, last_key = KEY(stop - 1) & ~WITHOUT_VALUE;
    const int continues_before = first > 0 && (KEY(first - 1) & ~WITHOUT_VALUE) == first_key;
    const int continues_behind = stop < count && (KEY(stop) & ~WITHOUT_VALUE) == last_key;
    carried_keys[before] = first_key | WITHOUT_VALUE;
    carried_keys[behind] = last_key | WITHOUT_VALUE;
    uint own_key = first_key;
    int is_first = 1, has_value = 0;
    C own = (C)0;
    for (long block = first; block <= stop; block += LOADS_IN_FLIGHT) {
        uint entries[LOADS_IN_FLIGHT];
        C loaded[LOADS_IN_FLIGHT];
        UNROLL for (int j = 0; j < LOADS_IN_FLIGHT; ++j) {
            const long k = block + j < stop ? block + j : stop - 1;
            entries[j] = KEY(k);
            loaded[j] = VALUE(k);
        }
        UNROLL for (int j = 0; j < LOADS_IN_FLIGHT; ++j) {
            const int is_end = block + j == stop;
            const uint key = entries[j] & ~WITHOUT_VALUE;
            if (is_end || key != own_key) {
                // A segment ends here.
                if (is_first && continues_before) {
                    if (has_value) carried_keys[before] = own_key;
                    carried[before] = own;
                } else if (is_end && continues_behind) {
                    if (has_value) carried_keys[behind] = own_key;
                    carried[behind] = own;
                } else if (has_value && own_key < parameters.length) {
                    const long element = (row * parameters.length + own_key) * inner + column;
                    WRITE(out, element, TYPE, combined(UPDATE, READ(out, element, TYPE), own));
                }
                if (is_end) return;
                own_key = key;
                is_first = has_value = 0;
            }
            if (entries[j] & WITHOUT_VALUE) continue;
            own = has_value ? combined(UPDATE, own, loaded[j]) : loaded[j];
            has_value = 1;
        }
    }
}
#endif
