// The place of the largest or smallest element of the middle axis of (outer, n, inner).

typedef struct {
    long outer, n, inner, start, parts, chunk, smallest, source, target;
} Parameters;
#ifndef SOURCE
#define SOURCE ((int)parameters.source)
#endif

// NaN is best of all; of equals the first stays.
inline int is_better(C x, C best, int smallest) {
    if (x != x) return best == best;
    return smallest ? x < best : x > best;
}

KERNEL(64)
void find_extremum(const Parameters parameters, GLOBAL const void* x, GLOBAL long* places) {
    const long n = parameters.n, inner = parameters.inner, item = ITEM;
    const long column = item % inner, above = item / inner;
    const long part = above % parameters.parts, row = above / parameters.parts;
    if (row >= parameters.outer) return;
    const long first = part * parameters.chunk;
    const long stop = first + parameters.chunk < n ? first + parameters.chunk : n;
    const long base = parameters.start + row * n * inner + column;
    const int smallest = (int)parameters.smallest;
    long found = first;
    C best = READ(x, base + first * inner, SOURCE);
    for (long k = first + 1; k < stop; ++k) {
        const C value = READ(x, base + k * inner, SOURCE);
        if (is_better(value, best, smallest)) {
            best = value;
            found = k;
        }
    }
    places[item] = found;
}

// The best among those that the parts found.
KERNEL(64) void join_extrema(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const long* places,
    GLOBAL void* out) {
    const long inner = parameters.inner, item = ITEM;
    const long column = item % inner, row = item / inner;
    if (row >= parameters.outer) return;
    const long base = parameters.start + row * parameters.n * inner + column;
    const long parts = parameters.parts;
    const int smallest = (int)parameters.smallest;
    long found = places[row * parts * inner + column];
    C best = READ(x, base + found * inner, SOURCE);
    for (long part = 1; part < parts; ++part) {
        const long k = places[(row * parts + part) * inner + column];
        const C value = READ(x, base + k * inner, SOURCE);
        if (is_better(value, best, smallest)) {
            best = value;
            found = k;
        }
    }
    write_long(out, item, (int)parameters.target, found);
}
