// A stable merge sort of rows of n elements: by keys, which are unsigned integers in the order of
// the elements. Passes go from one pair of arrays to the other and back.

typedef struct {
    long total, n, start, type, descending, width;
} Parameters;

#define BLOCK 16
#define SEGMENT 32

inline ulong key_of(C x) {
#if IS_FLOATING && IS_DOUBLE
    const ulong bits = x == 0.0 ? 0 : BITS_OF_DOUBLE(x);
    return x != x ? 0xffffffffffffffffUL : bits >> 63 ? ~bits : bits | 0x8000000000000000UL;
#elif IS_FLOATING
    const uint bits = x == 0.0f ? 0 : BITS_OF_FLOAT(x);
    return x != x ? 0xffffffffu : bits >> 31 ? ~bits : bits | 0x80000000u;
#elif IS_SIGNED
    return (ulong)x ^ 0x8000000000000000UL;
#else
    return x;
#endif
}

// Keys and places, each block of a row already in order.
KERNEL(64) void make_keys(
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
    const long n = parameters.n, width = parameters.width, item = ITEM;
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

KERNEL(64)
void write_places(const Parameters parameters, GLOBAL const uint* places, GLOBAL void* out) {
    const long i = ITEM;
    if (i < parameters.total) write_ulong(out, i, (int)parameters.type, places[i]);
}
