// Stable sorts of rows of n elements: by keys, which are unsigned integers in the order of the
// elements. Passes go from one pair of arrays to the other and back.

typedef struct {
    long total, n, start, type, descending, pass;
} Parameters;

#ifndef SIGN
#define SIGN 0x8000000000000000UL
#endif
inline ulong key_of(C x) {
#if IS_FLOATING && IS_DOUBLE
    const ulong bits = x == 0.0 ? 0 : BITS_OF_DOUBLE(x);
    return x != x ? 0xffffffffffffffffUL : bits >> 63 ? ~bits : bits | 0x8000000000000000UL;
#elif IS_FLOATING
    const uint bits = x == 0.0f ? 0 : BITS_OF_FLOAT(x);
    return x != x ? 0xffffffffu : bits >> 31 ? ~bits : bits | 0x80000000u;
#elif IS_SIGNED
    return (ulong)x ^ SIGN;
#else
    return x;
#endif
}

#ifdef HAS_make_blocks
// Merging: passes join runs, which become twice as long.
#define BLOCK 16
#define SEGMENT 32

// Keys and places, each block of a row already in order.
KERNEL(64) void make_blocks(
    const Parameters parameters, GLOBAL const void* x, GLOBAL ulong* keys, GLOBAL uint* places) {
    const long n = parameters.n, blocks = (n + BLOCK - 1) / BLOCK, item = ITEM;
    const long row = item / blocks, first = item % blocks * BLOCK;
    if (row * n >= parameters.total) return;
    const long base = row * n;
    const int count = n - first < BLOCK ? (int)(n - first) : BLOCK;
    for (int k = 0; k < count; ++k) {
        const C value = READ(x, parameters.start + base + first + k, (int)parameters.type);
        const ulong key = parameters.descending ? ~key_of(value) : key_of(value);
        int at = k;
        while (at > 0 && keys[base + first + at - 1] > key) {
            keys[base + first + at] = keys[base + first + at - 1];
            places[base + first + at] = places[base + first + at - 1];
            --at;
        }
        keys[base + first + at] = key;
        places[base + first + at] = (uint)(first + k);
    }
}

// A segment of two runs merged, which begins where the runs cross the diagonal of its start.
KERNEL(64) void merge_runs(
    const Parameters parameters, GLOBAL const ulong* keys, GLOBAL const uint* places,
    GLOBAL ulong* merged_keys, GLOBAL uint* merged_places) {
    const long n = parameters.n, width = parameters.pass, item = ITEM;
    const long segments = (n + SEGMENT - 1) / SEGMENT;
    const long row = item / segments, begin = item % segments * SEGMENT;
    if (row * n >= parameters.total) return;
    const long base = row * n;
    const long left = begin / (2 * width) * (2 * width);
    const long middle = left + width < n ? left + width : n;
    const long right = left + 2 * width < n ? left + 2 * width : n;
    const long end = begin + SEGMENT < right ? begin + SEGMENT : right;
    const long diagonal = begin - left;
    long low = diagonal > right - middle ? diagonal - (right - middle) : 0;
    long high = diagonal < middle - left ? diagonal : middle - left;
    while (low < high) {
        const long half_way = (low + high) / 2;
        if (keys[base + left + half_way] <= keys[base + middle + diagonal - 1 - half_way])
            low = half_way + 1;
        else
            high = half_way;
    }
    long first = left + low, second = middle + diagonal - low;
    for (long k = begin; k < end; ++k) {
        const int from_first =
            first < middle && (second >= right || keys[base + first] <= keys[base + second]);
        const long from = base + (from_first ? first++ : second++);
        merged_keys[base + k] = keys[from];
        merged_places[base + k] = places[from];
    }
}
#endif

#ifdef HAS_make_keys
KERNEL(256) void make_keys(
    const Parameters parameters, GLOBAL const void* x, GLOBAL KEY* keys, GLOBAL uint* places) {
    const long i = ITEM;
    if (i >= parameters.total) return;
    const ulong key = key_of(READ(x, parameters.start + i, (int)parameters.type));
    keys[i] = (KEY)(parameters.descending ? ~key : key);
    places[i] = (uint)(i % parameters.n);
}
#endif

#ifdef HAS_count_digits
// By digits of four bits, the lowest first: a group counts the digits in its tile, what comes before
// each tile is added up for each digit, and the groups move what is in their tiles to its places.
#define DIGITS 16
#define TILE (256 * PER)
#define DIGIT(key) ((int)((key) >> parameters.pass) & (DIGITS - 1))
#define BEGIN                                                                        \
    const long n = parameters.n, tiles = (n + TILE - 1) / TILE;                      \
    const long tile = GROUP % tiles, row = GROUP / tiles, first = tile * TILE;       \
    const int count = n - first < TILE ? (int)(n - first) : TILE, lane = LANE;       \
    const long base = row * n + first;

// What all items up to this one come to.
inline uint added_up(uint own, LOCAL uint* sums) {
    const int lane = LANE;
    sums[lane] = own;
    for (int step = 1; step < 256; step *= 2) {
        BARRIER;
        const uint before = lane >= step ? sums[lane - step] : 0;
        BARRIER;
        sums[lane] += before;
    }
    BARRIER;
    return sums[lane];
}

KERNEL(256)
void count_digits(const Parameters parameters, GLOBAL const KEY* keys, GLOBAL uint* counts) {
    LOCAL uint found[DIGITS];
    BEGIN
    if (lane < DIGITS) found[lane] = 0;
    BARRIER;
    for (int at = lane; at < count; at += 256) ADD_ONE(&found[DIGIT(keys[base + at])]);
    BARRIER;
    if (lane < DIGITS) counts[(row * DIGITS + lane) * tiles + tile] = found[lane];
}

// A group for each row and digit; behind the counts lie what they come to.
KERNEL(256) void add_counts(const Parameters parameters, GLOBAL uint* counts) {
    LOCAL uint sums[256];
    const long tiles = (parameters.n + TILE - 1) / TILE, base = GROUP * tiles;
    uint before = 0;
    for (long first = 0; first < tiles; first += 256) {
        const long at = first + LANE;
        const uint own = at < tiles ? counts[base + at] : 0;
        const uint sum = added_up(own, sums);
        if (at < tiles) counts[base + at] = before + sum - own;
        before += sums[255];
        BARRIER;
    }
    const long rows = parameters.total / parameters.n;
    if (LANE == 0) counts[rows * DIGITS * tiles + GROUP] = before;
}

KERNEL(256) void move_digits(
    const Parameters parameters, GLOBAL const KEY* keys, GLOBAL const uint* places,
    GLOBAL const uint* counts, GLOBAL KEY* moved_keys, GLOBAL uint* moved_places) {
    LOCAL KEY own_keys[TILE];
    LOCAL uint own_places[TILE];
    LOCAL ushort found[DIGITS * 256];
    LOCAL uint sums[256];
    LOCAL uint starts[DIGITS];
    BEGIN
    // Each item counts in keys that follow each other.
    KEY held[PER];
    for (int d = 0; d < DIGITS; ++d) found[d * 256 + lane] = 0;
    for (int k = 0; k < PER; ++k) {
        const int at = lane * PER + k;
        if (at >= count) break;
        held[k] = keys[base + at];
        ++found[DIGIT(held[k]) * 256 + lane];
    }
    BARRIER;
    // What comes before in the tile: smaller digits first, then items before.
    uint own = 0;
    for (int k = 0; k < DIGITS; ++k) own += found[lane * DIGITS + k];
    uint before = added_up(own, sums) - own;
    for (int k = 0; k < DIGITS; ++k) {
        const uint here = found[lane * DIGITS + k];
        found[lane * DIGITS + k] = (ushort)before;
        before += here;
    }
    BARRIER;
    if (lane < DIGITS) {
        const long tables = row * DIGITS, rows = parameters.total / n;
        uint start = counts[(tables + lane) * tiles + tile] - found[lane * 256];
        for (int d = 0; d < lane; ++d) start += counts[rows * DIGITS * tiles + tables + d];
        starts[lane] = start;
    }
    BARRIER;
    for (int k = 0; k < PER; ++k) {
        const int at = lane * PER + k;
        if (at >= count) break;
        const int place = found[DIGIT(held[k]) * 256 + lane]++;
        own_keys[place] = held[k];
        own_places[place] = places[base + at];
    }
    BARRIER;
    for (int at = lane; at < count; at += 256) {
        const KEY key = own_keys[at];
        const long target = row * n + (uint)(starts[DIGIT(key)] + at);
        moved_keys[target] = key;
        moved_places[target] = own_places[at];
    }
}
#endif

#ifdef HAS_write_places
KERNEL(64)
void write_places(const Parameters parameters, GLOBAL const uint* places, GLOBAL void* out) {
    const long i = ITEM;
    if (i < parameters.total) write_ulong(out, i, (int)parameters.type, places[i]);
}
#endif
